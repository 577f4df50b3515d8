"""The Evaluate page, over evaluations that are really made of a tiny corpus."""

import json
import time
from dataclasses import replace
from functools import partial

import pytest

from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain.types import Query
from core.evaluation import background, experiment_store, sets
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.diff.evaluations import evaluations_diff
from core.evaluation.experiment import perform, prepare
from core.evaluation.oracle import Mistake
from core.evaluation.spec import Spec
from tests.pages.reading import address, html, plain, shown
from tests.runs import HOSTILE
from ui.app.routes import title
from ui.evaluate import new

ASKED = {
    "q1": ("How do I send something back for a refund?", "returns:0-90", "plain", "dev"),
    "q2": ("Is a fragile vase shipped double boxed?", "fragile:0-80", "plain", "dev"),
    "q3": ("How long are keys stored?", "keys:0-80", "abstract", "test"),
    "q4": ("Does customs hold a parcel?", "customs:0-80", "abstract", "test"),
    "q5": ("What is the meaning of life?", None, "no_answer", "test"),
}
READ = sets.read
ROUTES = ("bm25", "dense", "hybrid_rrf")
AGAINST = "Against another evaluation"


def labelled_set(bend=lambda text: text):
    questions = tuple(
        Question(
            id, Query(bend(text)), bend(mode), split, answers=("days",) if hit else (), answerable=bool(hit)
        )
        for id, (text, hit, mode, split) in ASKED.items()
    )
    return LabelledSet("tiny", questions, {id: {hit: 2} for id, (_, hit, *_) in ASKED.items() if hit}, 2)


def frame(app, columns):
    """The dataframe that has a column."""
    return next(one.value for one in app.dataframe if columns in one.value.columns)


@pytest.fixture
def questions(engine, monkeypatch):
    """What the corpus "tiny" is asked; change it by `questions["set"] = ...`."""
    found = {"set": labelled_set()}

    def read(_name, _folder, *, split="test", **_):
        kept = tuple(q for q in found["set"].questions if split in ("all", q.split))
        return replace(found["set"], questions=kept)

    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", read)
    return found


@pytest.fixture
def made(engine, questions, once):
    """Make an evaluation, to its end."""

    def make(name="first", routes=ROUTES, **more):
        spec, folder = (
            Spec("tiny", routes, split="all", **more),
            experiment_store.place(engine.settings, name),
        )
        of = repr((spec, questions["set"]))
        return experiment_store.opened(
            once(folder, of, lambda made: perform(engine, prepare(engine, spec), out=made))
        )

    return make


@pytest.fixture
def look(view):
    """Open a tab of the page."""
    return partial(view, "evaluate.py")


def test_without_an_evaluation_the_form_is_open(visit, questions):
    app = visit("evaluate.py")
    assert "No evaluation of tiny yet" in shown(app)
    assert app.button(key="ev_begin")


def test_the_leaderboard_has_the_figures_of_the_folder(look, made):
    evaluation = made()
    figures = json.loads((evaluation.folder / "metrics.json").read_text())
    app = look()
    table = frame(app, "scored")
    assert len(table) == 3
    for route, row in figures["routes"].items():
        line = table[table["Route"].str.removesuffix(" (baseline)") == title(route)].iloc[0]
        assert line["nDCG@10"] == pytest.approx(row["ndcg@10"])
        assert line["p95 ms"] == pytest.approx(row["p95_ms"])
        assert (line["scored"], line["not scored"], line["failed"]) == (4, 1, 0)
    assert list(table["nDCG@10"]) == sorted(table["nDCG@10"], reverse=True)
    assert "4 questions)" in html(app)
    assert "5 questions asked, 4 with a relevant passage" in shown(app)


@pytest.mark.parametrize("page", ["evaluate", "release"])
def test_views_share_no_element_as_one_stays_behind_another(visit, made, page):
    made(), made("second")
    app, seen = visit(f"{page}.py"), []
    for number, name in enumerate([view.label for view in app.tabs]):
        app.session_state[f"{page}_tab"] = name
        assert not app.run().exception
        seen += [id for one in app.tabs[number] if (id := getattr(one.proto, "id", ""))]
    assert len(set(seen)) == len(seen) > 5
    app.session_state[f"{page}_tab_left"] = app.tabs[0].label
    assert not app.run().exception
    assert [bool(view.children) for view in app.tabs] == [at in (0, number) for at in range(number + 1)]


def test_another_baseline_compares_all_again(look, made):
    evaluation = made()
    app = look("Differences")
    assert "d_z" in frame(app, "Verdict").columns
    app.selectbox(key="evaluate_baseline:first").set_value("dense").run()
    table = frame(app, "Verdict")
    assert address(app, "baseline") == "dense"
    assert set(table["Route"]) == {title("bm25"), title("hybrid_rrf")}
    values = evaluation.values
    mine, base = values["bm25"], values["dense"]
    delta = sum(mine[q]["ndcg@10"] - base[q]["ndcg@10"] for q in mine) / len(mine)
    assert table[table["Route"] == title("bm25")].iloc[0]["Difference"] == pytest.approx(delta)
    again = look("Differences", baseline="dense")
    assert list(frame(again, "Verdict")["Difference"]) == list(table["Difference"])


def test_a_metric_sorts_the_leaderboard_and_is_in_the_address(look, made):
    made()
    app = look(metric="recall@10")
    assert app.selectbox(key="evaluate_metric").value == "recall@10"
    assert address(app, "metric") == "recall@10"
    assert next(name for name in frame(app, "scored") if name != "Route") == "recall@10"
    app = look(metric="nonsense", baseline="nobody", tab="Nowhere", mode="nothing")
    assert app.selectbox(key="evaluate_metric").value == "ndcg@10"


def test_questions_are_filtered_with_one_click(look, made, questions):
    odd = {
        "q1": {"keys:0-80": 2},
        "q2": {"customs:0-80": 2},
        "q3": {"keys:0-80": 2},
        "q4": {"returns:0-90": 2},
    }
    questions["set"] = replace(labelled_set(), qrels=odd)
    evaluation = made()
    values = evaluation.values
    by = {q: values["bm25"][q]["ndcg@10"] - values["dense"][q]["ndcg@10"] for q in values["bm25"]}
    assert any(by.values())
    sides = {
        "all": set(ASKED),
        "failed": {q for q, row in values["bm25"].items() if row["ndcg@10"] == 0},
        "different": {q for q, d in by.items() if abs(d) > 1e-12},
        "better": {q for q, d in by.items() if d > 1e-12},
        "worse": {q for q, d in by.items() if d < -1e-12},
    }
    for side, wanted in sides.items():
        app = look("Questions", a="bm25", b="dense", side=side)
        assert f"{side.capitalize()} ({len(wanted)})" in app.segmented_control(key="evaluate_side").options
        listed = {
            q
            for q, (text, *_) in ASKED.items()
            if any(plain(one.label).startswith(text) for one in app.expander)
        }
        assert listed == wanted
    app = look("Questions", mode="abstract")
    assert app.segmented_control(key="evaluate_side").options[0] == "All (2)"


def test_a_question_shows_the_hits_of_its_routes_and_opens_in_why(look, made, engine):
    evaluation = made()
    app = look("Questions", question="q2")
    app.session_state["evaluate_scores"] = True
    page = html(app.run())
    table = frame(app, "Best to worst")
    spread = list(table["Best to worst"].dropna())
    assert spread == sorted(spread, reverse=True)
    assert {title(route) for route in ROUTES} <= set(table.columns)
    assert ASKED["q2"][0] in page
    first = evaluation.outcomes["q2"]["bm25"].hits[0][0]
    assert engine.corpus("tiny").by_ids([first])[first].title in page
    app.button(key="evaluate_why:q2").click().run()
    run = engine.store.load(evaluation.run_id("q2"))
    assert run.query.text == ASKED["q2"][0]
    assert {result.route for result in run.results} == set(ROUTES)
    assert run == evaluation.run("q2")


def test_a_baseline_belongs_to_its_evaluation(look, made):
    made("first")
    made("second", baseline="hybrid_rrf")
    app = look(evaluation="first", baseline="dense")
    assert app.selectbox(key="evaluate_baseline:first").value == "dense"
    app.selectbox(key="evaluation").set_value("second").run()
    assert app.selectbox(key="evaluate_baseline:second").value == "hybrid_rrf"
    assert address(app, "baseline") is None


def test_the_form_begins_an_evaluation_and_the_page_shows_it(visit, questions, engine):
    app = visit("evaluate.py")
    app.multiselect(key="ev_routes").set_value(["bm25", "dense"]).run()
    app.selectbox(key="ev_split").set_value("all").run()
    app.selectbox(key="ev_baseline").set_value("dense").run()
    assert app.button(key="ev_begin").label == "Evaluate 2 routes on 5 questions"
    app.session_state["ev_sample"] = "some"
    app.session_state["ev_some"] = 3
    app.run()
    assert app.button(key="ev_begin").label == "Evaluate 2 routes on 3 questions"
    assert "No time estimate" in shown(app)
    name = next(one for one in app.text_input if one.label == "Name").value
    app.button(key="ev_begin").click().run()
    assert not app.exception
    assert not app.session_state["evaluate_new"], "the form is closed"
    one = background.under_way(engine, name)
    assert one.wait(30)
    assert one.error is None
    app.run()
    assert address(app, "evaluation") == name
    assert app.selectbox(key=f"evaluate_baseline:{name}").value == "dense"
    spec = experiment_store.opened(experiment_store.place(engine.settings, name)).spec
    assert (spec["routes"], spec["split"], spec["baseline"]) == (["bm25", "dense"], "all", "dense")
    assert (spec["per_mode"], spec["queries"]) == (None, 3)


def test_questions_come_from_a_file_whose_columns_are_mapped(visit, questions, engine, monkeypatch):
    """A file of no known format: its first rows are shown, its columns chosen, the rest named."""
    monkeypatch.setattr(sets, "read", READ)
    passage = engine.corpus("tiny").by_ids(["keys:0-80"])["keys:0-80"]
    rows = [
        {"Frage": "How long are keys stored?", "Kontext": passage.text, "Notiz": "x"},
        {"Frage": "Where are keys stored?", "Kontext": passage.text, "Notiz": "y"},
    ]
    app = visit("evaluate.py")
    app.selectbox(key="ev_questions").set_value(new.FILE).run()
    app.file_uploader(key="ev_file").set_value(
        ("Fragen 1.json", json.dumps(rows).encode(), "text/plain")
    ).run()
    assert frame(app, "Notiz")["Notiz"].tolist() == ["x", "y"]
    app.selectbox(key="ev_column_question").set_value("Frage").run()
    assert "No question of this file has a label" in shown(app)
    app.selectbox(key="ev_column_relevant").set_value("Kontext").run()
    assert "Columns not used: Notiz" in shown(app)
    app.multiselect(key="ev_routes").set_value(["bm25"]).run()
    assert app.button(key="ev_begin").label == "Evaluate 1 route on 2 questions"
    name = next(one for one in app.text_input if one.label == "Name").value
    app.button(key="ev_begin").click().run()
    assert not app.exception
    one = background.under_way(engine, name)
    assert one.wait(30)
    assert one.error is None
    found = experiment_store.opened(experiment_store.place(engine.settings, name))
    assert found.spec["columns"] == {"question": "Frage", "relevant": "Kontext"}
    assert found.figures["routes"]["bm25"]["recall@10"] == 1.0
    (path,) = found.spec["questions"]
    assert path.startswith(str(engine.settings.home)), "it is there when the evaluation is resumed"


def test_names_that_cannot_be_are_told(visit, questions, made):
    made("first", ("bm25",))
    app = visit("evaluate.py")
    app.session_state["evaluate_new"] = True
    app.run()
    for name, said in (
        ("../x", "a letter or digit first"),
        ("first", "is taken"),
        ("<img src=x>", "a letter or digit first"),
    ):
        next(one for one in app.text_input if one.label == "Name").set_value(name).run()
        app.button(key="ev_begin").click().run()
        (told,) = app.error
        assert said in told.value.replace("\\", ""), name


def test_it_is_stopped_and_goes_on(visit, questions, engine):
    engine.fake_llm.delay = 0.4
    one = background.begin(engine, "slow", Spec("tiny", ("bm25", "hyde"), split="all"))
    while not one.finished:
        time.sleep(0.02)
    engine.fake_llm.delay = 50  # until it is stopped
    app = visit("evaluate.py")
    assert "when you close this tab" in shown(app)
    app.button(key="evaluate_stop:slow").click().run()
    assert one.wait(20)
    assert one.cancelled
    app = visit("evaluate.py", evaluation="slow")
    done = one.finished
    assert app.button(key="evaluate_resume").label == f"Resume ({done} of 5 done)"
    assert f"the figures cover {done} of 5 questions" in shown(app)
    engine.fake_llm.delay = 0
    app.button(key="evaluate_resume").click().run()
    again = background.under_way(engine, "slow")
    assert again is not one
    assert again.wait(20)
    app = visit("evaluate.py", evaluation="slow")
    assert "evaluate_resume" not in [button.key for button in app.button]
    assert "the figures cover" not in shown(app)


def test_what_failed_is_counted_and_asked_again(visit, questions, engine):
    engine.fake_llm.missing = "the model is away"
    one = background.begin(engine, "gaps", Spec("tiny", ("bm25", "hyde"), split="all"))
    assert one.wait(30)
    app = visit("evaluate.py")
    table = frame(app, "scored")
    assert list(table["failed"]) == [0, 5]
    assert table.iloc[1].isna()["nDCG@10"]
    assert "Failed and excluded from all means" in shown(app)
    engine.fake_llm.missing = None
    app.button(key="evaluate_retry").click().run()
    assert background.under_way(engine, "gaps").wait(30)
    assert background.under_way(engine, "gaps").resumes
    app = visit("evaluate.py")
    assert list(frame(app, "scored")["failed"]) == [0, 0]


def test_deleting_says_what_is_lost(look, made, engine):
    made()
    app = look()
    assert "5 questions" in shown(app)
    (name,) = experiment_store.names(engine.settings)
    app.button(key="evaluate_remove").click().run()
    assert experiment_store.names(engine.settings) == []
    assert "No evaluation of tiny yet" in shown(app)
    app.button(key="evaluate_undo").click().run()
    assert experiment_store.names(engine.settings) == [name]
    assert not [one for one in app.button if one.key == "evaluate_undo"]


@pytest.mark.parametrize("damage", ["labelled.json", "questions.jsonl", "metrics.json"])
def test_a_damaged_folder_is_told_and_can_be_deleted(visit, made, engine, damage):
    evaluation = made("broken", ("bm25",))
    (evaluation.folder / damage).write_text('{"spec": 1, "routes": [}\n' * 3)
    app = visit("evaluate.py", evaluation="broken")
    assert "is damaged" in shown(app)
    app.button(key="evaluate_remove").click().run()
    assert experiment_store.names(engine.settings) == []


def test_the_list_tells_the_state_of_each(visit, made):
    made("first", ("bm25",))
    made("second")
    app = visit("evaluate.py")
    app.session_state["evaluate_all"] = True
    app.run()
    table = frame(app, "State")
    assert list(table["Name"]) == ["second", "first"]
    assert list(table["State"]) == ["finished", "finished"]
    assert list(table["Routes"]) == [3, 1]
    assert list(table["Done"]) == ["5 of 5", "5 of 5"]


def test_hostile_questions_and_modes_are_text(look, made, questions):
    questions["set"] = labelled_set(lambda text: f"{text} {' '.join(HOSTILE)}")
    made("evil")
    for tab in ("Leaderboard", "By failure mode", "Questions"):
        app = look(tab, question="q1")
        page = html(app) + "".join(one.proto.spec for one in app.main.get("plotly_chart"))
        for mark in ("<img", "<script", "<svg", 'onmouseover="alert'):
            assert mark not in page
        texts = [one.value for kind in (app.caption, app.markdown, app.info, app.error) for one in kind]
        assert not any("](javascript" in text or "![pixel](" in text for text in texts)


def test_one_route_alone_has_nothing_to_compare(look, made):
    made("alone", ("bm25",))
    for tab, told in (
        ("Differences", "only one route"),
        ("Best per question", "It takes two routes"),
        ("Routers", "No route of this evaluation chooses another route"),
        (AGAINST, "No other evaluation of this corpus is saved. After a change"),
    ):
        assert told in shown(look(tab)), tab


def test_answers_are_a_metric_too(look, made):
    made("answers", ("bm25", "dense"), answers=True, answer_by="extract")
    app = look(metric="supported_accuracy")
    assert app.selectbox(key="evaluate_metric").value == "supported_accuracy"
    assert "supported accuracy" in html(app)
    for tab in ("Differences", "By failure mode", "Questions", "Best per question", "Routers"):
        app = look(tab, metric="supported_accuracy")
        assert not app.error, (tab, shown(app))
        assert (address(app, "tab"), address(app, "evaluation")) == (tab, "answers")


def test_rounds_tell_how_stable_it_is(look, made):
    made("rounds", ("bm25", "hyde"), repeats=3)
    app = look("Stability")
    table = frame(app, "Changed")
    assert list(table["Route"]) == [title("hyde")]
    assert {"Round 1", "Round 2", "Round 3"} <= set(table.columns)
    assert "3 rounds" in html(app)


def test_an_error_before_the_first_question_is_told(visit, questions, engine, monkeypatch):
    def broken(*_, **__):
        raise OSError("the disk is <b>full</b>")

    monkeypatch.setattr(background, "perform", broken)
    app = visit("evaluate.py")
    app.session_state["ev_routes"] = ["bm25"]
    app.run()
    app.button(key="ev_begin").click().run()
    until = time.time() + 20
    while "ended before its first question" not in shown(app) and time.time() < until:  # it is told once
        app.run()
    assert "ended before its first question" in shown(app)
    assert "the disk is <b>full</b>" in shown(app)  # as text: every mark has its backslash
    assert all("<b>" not in one.value for one in app.error)


def test_a_corpus_that_changed_is_told_when_it_is_asked_again(visit, made, engine):
    made("changed", ("bm25",))
    engine.fakes["tiny"].fingerprint = "another"
    background.resume(engine, "changed", retry=True).wait(20)
    app = visit("evaluate.py", evaluation="changed")
    assert "The last attempt failed" in shown(app)
    assert "start a new evaluation" in shown(app)


def test_labels_in_the_address_open_the_form_with_them(visit, made, engine):
    from core.evaluation.labels import desk

    made("first", ("bm25",))
    desk.create(engine.store, "mine", "tiny", labelled_set().questions)
    app = visit("evaluate.py", labels="mine")
    assert app.session_state["evaluate_new"]
    assert app.selectbox(key="ev_questions").value == "mine"
    app = visit("evaluate.py", labels="nobody's")
    assert app.selectbox(key="ev_questions").value == ""


def test_a_routers_mistakes_are_listed_with_what_decided(look, made, monkeypatch):
    made("routed", ("rerank", "adaptive", "bm25", "dense"))
    app = look("Routers")
    assert not app.exception
    page = shown(app) + html(app)
    assert "Against Hybrid + rerank, its default, the difference is" in page
    assert "on 0 of them the default" in page, "every question went to the default"
    lost = [Mistake("q1", "bm25", 0.2, "dense", 0.1, 0.3)]
    monkeypatch.setattr("core.evaluation.oracle.mistakes", lambda *_: lost)
    app = look("Routers")
    table = frame(app, "Features that decided")
    assert list(table["Given to"]) == [title("bm25")]
    assert list(table["Lost to rerank"]) == [0.1]
    assert all(why.startswith("P(") for why in table["Features that decided"])


def test_what_broke_and_what_was_fixed_is_listed_with_the_step(look, made, engine, questions):
    """Labelled is a passage that dense has among its first 5 and bm25 has not."""
    probe = made("probe").outcomes["q1"]
    top = {route: [hit for hit, _ in probe[route].hits[:5]] for route in ROUTES}
    won = next(hit for hit in top["dense"] if hit not in top["bm25"])
    questions["set"] = replace(labelled_set(), qrels={"q1": {won: 2}})
    first, second = made("first"), made("second")
    asked = {
        "evaluation": "second",
        "metric": "precision@5",
        "other": "first",
        "then": "bm25",
        "now": "dense",
    }
    app = look(AGAINST, **asked)
    (one,) = evaluations_diff(first, second, [("bm25", "dense")], "precision@5").routes
    counts = {change: len(one.questions.of(change)) for change in ("broken", "fixed", "unchanged")}
    told = ", ".join(f"{count} {change}" for change, count in counts.items())
    assert f"{told} of 1 question (exact McNemar test" in html(app)
    assert counts == {"broken": 0, "fixed": 1, "unchanged": 0}
    side, changed = "fixed", one.questions.of("fixed")[0]
    app = look(AGAINST, **asked, change=side, question=changed.id)
    table = frame(app, "Rank before")
    assert list(table["Losing step"]) == [q.decisive.loss.step for q in one.questions.of(side)]
    assert changed.decisive.loss.step in ("search BM25", "search vectors")
    assert changed.decisive.loss.words in html(app)
    assert [address(app, name) for name in ("other", "now", "question")] == ["first", "dense", changed.id]
    app.button(key="evaluate_against_why_1").click().run()
    run = second.run_id(changed.id)
    assert engine.store.load(run).query.text == changed.text
    assert (address(app, "run"), address(app, "passage")) == (run, changed.decisive.passage)
