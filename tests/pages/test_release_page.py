"""The Release page, over evaluations made by hand in the home of the tiny corpus."""

import json
import re
import shlex
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial

import pytest

from core.api import gate
from core.cli import main
from core.domain.format import number
from core.domain.types import Passage, Query
from core.evaluation import experiment_store
from core.evaluation.dataset import Complaint, LabelledSet, Question
from core.evaluation.experiment_store import RUNS
from core.evaluation.labels import desk as desks
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation, settled
from core.evaluation.release.snapshot import snapshot
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.pages.reading import address, html, plain, shown
from tests.released import evaluation, failed, labelled, outcome
from tests.runs import HOSTILE, make_run

TABS = (
    "Criteria",
    "What it rests on",
    "What it does worse",
    "Regressions",
    "Ladder",
    "Against a release",
    "Report and build",
    "Python module",
)


def routes(shift=0, run=""):
    """bm25 at rank 2, dense at 1 but for every third question, rerank at 1 and slow."""
    return {
        "bm25": [outcome(2 + shift, ms=4.0, run=run) for _ in range(66)],
        "dense": [outcome((4 if n % 3 == 0 else 1) + shift, ms=9.0, run=run) for n in range(66)],
        "rerank": [outcome(1 + shift, ms=3000.0, calls=1, tokens=200, run=run) for _ in range(66)],
    }


@pytest.fixture
def kept(engine, once):
    """Keep an evaluation under a name."""

    def keep(name="first", by_route=None, **more):
        found = by_route or routes()
        folder = experiment_store.place(engine.settings, name)
        return experiment_store.opened(
            once(folder, repr((found, more)), lambda made: evaluation(made, found, **more))
        )

    return keep


@pytest.fixture
def look(view):
    """Open a tab of the page."""
    return partial(view, "release.py")


def limit(app, field):
    return next(one for one in app.number_input if one.key.startswith(f"release:{field}:"))


def test_the_decision_stands_first_with_criteria_derived_from_the_baseline(look, kept):
    measured = of_evaluation(kept())
    decision = decide(measured, settled(measured, Criteria()))
    app = look()
    assert decision.headline in shown(app)
    assert "Ship Dense" in html(app)
    assert decision.chosen == "dense"
    page = html(app)
    for one in decision.candidates:
        assert one.title in page
        assert number(one.mean) in page
    assert 'aria-label="passed"' in page
    assert "failed: 3.0 s" in page
    assert limit(app, "minimum").value == pytest.approx(0.63)
    assert limit(app, "max_p95_ms").value == 1000.0
    assert address(app, "min") is None


CASES = {
    "ships": routes(),
    "few questions": {route: found[:20] for route, found in routes().items()},
    "the baseline fails": {**routes(), "bm25": [failed(), *routes()["bm25"][1:]]},
    "nothing judged below": {**routes(4), "bm25": [outcome(None) for _ in range(66)]},
    "unlike machines": {
        route: [replace(one, machine=f"kind {n % 2}") for n, one in enumerate(found)]
        for route, found in routes().items()
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_page_and_the_command_decide_the_same(look, kept, case, capsys):
    made = kept(by_route=CASES[case])
    app = look("Report and build")
    expected = gate(made)
    assert expected.headline in shown(app)
    for field in ("minimum", "max_p95_ms", "max_unjudged", "max_failed", "margin"):
        assert limit(app, field).value == getattr(expected.criteria, field)
    assert ("From the baseline" in shown(app)) == bool(expected.criteria.derived)
    # the command for a build applies the same limits
    words = shlex.split(next(one.value for one in app.code if "--report" in one.value))
    main(["gate", str(made.folder), *words[5 : words.index("--report")], "--json"])
    found = json.loads(capsys.readouterr().out)
    limits = {**asdict(expected.criteria), "derive": found["criteria"]["derive"], "derived": []}
    assert found["criteria"] == limits
    assert (found["decision"], found["chosen"]) == (expected.verdict.decision, expected.chosen)


def test_a_criterion_decides_anew_and_is_in_the_address(look, kept):
    kept()
    app = look()
    limit(app, "max_p95_ms").set_value(5000.0).run()
    assert "Ship Hybrid + rerank" in shown(app)
    assert address(app, "p95") == "5000"
    again = look(p95="5000")
    assert "Ship Hybrid + rerank" in shown(again)
    limit(again, "minimum").set_value(1.5).run()
    assert "Nothing passes" in shown(again)
    assert "The nearest route is Hybrid + rerank" in shown(again)
    limit(again, "minimum").set_value(None).run()
    assert address(again, "min") == "none"
    assert "Ship Hybrid + rerank" in shown(again)
    assert limit(look(min="none", p95="5000"), "minimum").value is None


def test_addresses_that_cannot_be_are_passed_over(look, kept):
    kept()
    app = look(
        min="high", p95="-3", failed="7", unjudged="nan", metric="nobody", loss="perhaps", question="q99"
    )
    assert "Ship Dense" in shown(app)
    assert limit(app, "max_p95_ms").value == 1000.0


def test_another_metric_has_its_own_limits(look, kept):
    kept()
    app = look(min="0.1")
    app.selectbox(key="release_metric").set_value("map").run()
    assert address(app, "metric") == "map"
    assert limit(app, "minimum").value == pytest.approx(0.5)
    assert address(app, "min") is None


def test_the_chart_has_the_comparisons_that_the_verdict_rests_on(look, kept):
    measured = of_evaluation(kept())
    (pair,) = decide(measured, settled(measured, Criteria())).verdict.pairs
    app = look("What it rests on")
    (drawn,) = json.loads(app.main.get("plotly_chart")[-1].proto.spec)["data"]
    assert drawn["x"] == [pytest.approx(pair.delta)]
    assert drawn["error_x"]["arrayminus"] == [pytest.approx(pair.delta - pair.low)]


def test_a_worse_question_opens_in_why(look, kept, engine):
    run = make_run(mishaps=False, run_id="of-q0", corpus="tiny")
    made = kept(by_route=routes(run="of-q0"))
    with closing(Store(made.folder / RUNS)) as store:
        store.save(run)
        assert store.flush()
    app = look("What it does worse", question="q0")
    assert "Dense scores lower in nDCG@10 on 22 questions" in shown(app)
    assert "question 0" in shown(app)
    app.button(key="release_why").click().run()
    assert engine.store.load("of-q0") == run
    assert address(app, "run") == "of-q0"


def test_a_snapshot_is_held_against(look, kept):
    measured = of_evaluation(kept())
    content = snapshot(measured, decide(measured, Criteria(no_loss=False, max_p95_ms=100.0))).encode()
    kept("second", routes(shift=2))
    app = look("Against a release", evaluation="second", min="none", cheapest="0")
    assert "Upload the snapshot of an earlier release" in shown(app)
    app.session_state["release_snapshot"] = ("release.json", content)
    app.run()
    assert "A regression: Dense now against Dense then" in shown(app)
    app.session_state["release_snapshot"] = ("release.json", b"{")
    app.run()
    assert "release.json is damaged" in shown(app)
    app = look("Report and build")
    assert not app.exception


def test_an_evaluation_without_figures_says_so(look, kept):
    made = kept()
    (made.folder / "metrics.json").unlink()
    assert "has no figures yet" in shown(look())


def test_hostile_text_is_shown_as_text(look, kept):
    texts = [f"{HOSTILE[n % 4]} {n}" for n in range(66)]
    kept(asked=labelled(30, texts=texts, modes=HOSTILE[:2]))
    for tab in TABS:
        app = look(tab)
        assert not [one.value for one in app.error if "not indexed" not in one.value], shown(app)
        assert address(app, "tab") == (None if tab == "Criteria" else tab)
        assert ("“Wrong…” on Compare and Why" in shown(app)) == (tab == "Regressions")
        page = html(app)
        for mark in ("<img", "<script", "<svg", 'onmouseover="alert'):
            assert mark not in page
        told = [one.value for kind in (app.markdown, app.caption, app.success) for one in kind]
        live = [re.sub(r"\\.", "", text) for text in told]  # what is left after escapes is markup
        assert not any(mark in text for text in live for mark in ("![pixel]", "<img", "<script", "](java"))


def reported(engine, question, passage, corpus="tiny"):
    """A set with one complaint, as “Wrong…” makes it."""
    said = Complaint("ann", "ranked too low", "run1", "bm25", passage)
    desks.create(engine.store, "regressions", corpus, [Question("r0", Query(question), complaints=(said,))])
    pool = {"r0": [Pooled(Passage(passage, "gold.md", "Gold", "text", 0, 4))]}
    desks.add_to_pool(engine.store, "regressions", pool)
    desks.judge(engine.store, "regressions", Judgement("r0", passage, "ann", "person", "grade", 3))
    return Question("r0", Query(question), complaints=(said,))


def test_a_regression_that_broke_is_named_below_the_verdict_and_in_its_tab(look, kept, engine):
    kept()
    question = reported(engine, "where is the box?", "gold")
    app = look(evaluation="first")
    assert "regressions: 1 reported questions, not asked with this route yet." in shown(app)
    asked = LabelledSet("regressions", (question,), {"r0": {"gold": 3}}, 2)
    folder = experiment_store.place(engine.settings, "again")
    by_route = {name: [outcome(None)] for name in routes()}
    made = evaluation(folder, by_route, asked=asked)
    spec = {**made.spec, "labels": "regressions"}
    experiment_store.write_labelled(folder, asked, spec)
    app = look(evaluation="first", tab="Regressions")
    route = decide(
        of_evaluation(experiment_store.opened(experiment_store.place(engine.settings, "first"))), Criteria()
    ).chosen
    assert route
    assert "passes 0 of 1 question, 1 broke again." in shown(app)
    assert "See the tab Regressions." in shown(app)
    (table,) = [one.value for one in app.dataframe if "reported as" in one.value]
    assert list(table.iloc[0])[:3] == [
        "✗ broke again",
        "where is the box?",
        "gold is not found, wanted in the first 10",
    ]
    assert list(table.iloc[0])[3:5] == ["Ranked too low", "ann"]


def test_how_many_more_labels_would_settle_it_and_the_way_to_them(look, kept, engine):
    one, other = ([outcome(1 + (n + by) % 3) for n in range(66)] for by in (0, 1))
    made = kept("close", {"bm25": one, "dense": other})
    app = look(evaluation="close")
    decision = decide(of_evaluation(made), settled(of_evaluation(made), Criteria()))
    assert decision.verdict.more_questions > 0
    press = next(one for one in app.button if one.key == "release_settle")
    assert "most decisive questions come first" in plain(app.button(key="release_settle").help)
    press.click().run()
    assert not app.exception
    (made_set,) = desks.sets(engine.store)
    assert made_set.name == "tiny to settle"


def test_a_snapshot_says_which_questions_broke(look, kept):
    def ranks(*found):
        return {"bm25": [outcome(rank) for rank in found]}

    measured = of_evaluation(kept("then", ranks(1, 2, None, *[1] * 17)))
    content = snapshot(measured, decide(measured, Criteria(no_loss=False)))
    kept("now", ranks(None, 2, 3, *[1] * 17))
    app = look("Against a release", evaluation="now", loss="0")
    app.session_state["release_snapshot"] = ("release.json", content.encode())
    app.run()
    assert "1 question broke and 1 was fixed, of 20 questions" in shown(app)
    table = next(one.value for one in app.dataframe if "Rank before" in one.value.columns)
    assert list(table["Question"]) == ["question 0"]
    assert table["Rank before"].tolist() == [1]
    earlier = {**json.loads(content), "questions": {}}
    app.session_state["release_snapshot"] = ("release.json", json.dumps(earlier).encode())
    app.run()
    assert "Which questions broke cannot be determined" in shown(app)


@pytest.mark.parametrize("page", ["evaluate.py", "tune.py", "release.py"])
def test_a_corpus_without_evaluations_shows_none_of_another(visit, engine, page):
    evaluation(experiment_store.place(engine.settings, "theirs"), routes(), corpus="other")
    app = visit(page)
    assert "No evaluation of tiny yet" in [one.value for one in app.subheader]
    assert "theirs" not in shown(app) + html(app)
    assert not app.main.get("plotly_chart")
    assert "evaluation" not in [one.key for one in app.selectbox]
    app = visit(page, evaluation="theirs")
    assert app.session_state["corpus"] == "other", "a link chooses the corpus of its evaluation"
