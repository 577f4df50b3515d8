"""The tab "Decision audit" of Evaluate, over audits that are really made of a tiny corpus."""

import pytest

from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.evaluation import background, experiment, experiment_store, sets
from core.evaluation.audit import audit, decisions
from core.evaluation.spec import Spec
from tests.audited import STEP, known_to, labelled_set, other_words
from tests.fakes import ScriptedLLM
from tests.pages.reading import html, shown

TAB = "Decision audit"
SPEC = Spec("tiny", audit=("wary",), split="test")


@pytest.fixture
def wary(engine, monkeypatch):
    """The engine of pages, with the route and the questions of these tests."""
    known_to(monkeypatch)
    engine.fake_llm = ScriptedLLM({"again": other_words})
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", lambda *_, **__: labelled_set())
    monkeypatch.setattr(sets, "tie", lambda found, _corpus: (found, []))
    yield engine
    decisions.own.cache_clear()


@pytest.fixture
def made(wary, once):
    """A finished audit, "first"."""
    folder = experiment_store.place(wary.settings, "first")
    return once(folder, "audit", lambda out: audit.perform(wary, audit.prepare(wary, SPEC), out))


def frame(app, column):
    """The dataframe that has a column."""
    return next(one.value for one in app.dataframe if column in one.value.columns)


def test_the_tables_have_the_figures_of_the_folder(view, made):
    document = audit.read(made)
    (row,) = (one for one in document["decisions"] if one["step"] == STEP)
    app = view("evaluate.py", TAB, figure="recall@10")
    assert not app.error, shown(app)
    line = frame(app, "Precision").iloc[0]
    found = row["figures"]["recall@10"]
    assert (line["Both ways"], line["Fired"], line["Missed"], line["Tied"]) == (8, 5, 1, 1)
    assert (line["Precision"], line["Recall"]) == (found["precision"], found["recall"])
    assert line["Gain"] == found["gain"]["delta"] == 0.25
    assert (line["More calls"], line["More tokens"]) == (1, 15)
    routes = frame(app, "Planned").set_index("Route")
    assert routes.loc["Wary", "Planned"] == document["routes"]["wary"]["planned"]["delta"]
    assert routes.loc["Hybrid (RRF)", "Claim"] == "baseline"
    assert f"Wary: {STEP}: +0.250 recall@10 (95% interval " in html(app)
    assert "Show numbers" in html(app)


def test_the_questions_of_a_decision_open_both_runs(view, made, wary):
    app = view("evaluate.py", TAB, figure="recall@10", side="better")
    table = frame(app, "Gain of firing")
    assert sorted(table["Question"]) == ["maybe qqq", "maybe zzz", "qqq"]
    assert list(table["Gain of firing"]) == [1, 1, 1]
    assert dict(zip(table["Question"], table["Fired"], strict=True))["qqq"] == "no"
    case = next(one for one in audit.read_cases(made) if one.question == "missed")
    evaluation = experiment_store.opened(made)
    itself, forced = (evaluation.stored(id, "missed") for id in case.runs)
    assert (len(itself.results), len(forced.results)) == (3, 1)
    assert forced.settings["forced"] == {STEP: "search again"}


def test_an_evaluation_without_an_audit_says_how_to_make_one(view, wary, made):
    folder = experiment_store.place(wary.settings, "plain")
    experiment.perform(wary, experiment.prepare(wary, Spec("tiny", ("bm25", "wary"))), out=folder)
    app = view("evaluate.py", TAB, evaluation="plain")
    assert "This evaluation has no decision audit." in shown(app)
    next(one for one in app.button if one.label == "New evaluation with an audit").click().run()
    assert app.session_state["ev_audit"] is True


def test_the_form_begins_an_audit_where_a_route_decides(visit, wary):
    app = visit("evaluate.py")
    app.multiselect(key="ev_routes").set_value(["bm25"]).run()
    assert not [one for one in app.checkbox if one.key == "ev_audit"], "it decides nothing"
    app.multiselect(key="ev_routes").set_value(["wary"]).run()
    app.checkbox(key="ev_audit").check().run()
    name = next(one for one in app.text_input if one.label == "Name").value
    app.button(key="ev_begin").click().run()
    assert not app.exception
    assert background.under_way(wary, name).wait(30)
    document = audit.read(experiment_store.place(wary.settings, name))
    assert document["baseline"] == "hybrid_rrf", "what decides is no baseline of itself"
    assert [row["n"] for row in document["decisions"]] == [8]


def test_a_damaged_audit_is_told(view, made):
    (made / audit.AUDIT).write_text("{}")
    app = view("evaluate.py", TAB)
    assert "audit.json is damaged" in shown(app)
