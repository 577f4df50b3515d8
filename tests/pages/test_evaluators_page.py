"""Evaluators: thresholds moved on stored grades, decisions and what was kept."""

from dataclasses import replace

import pytest

from core.analysis.run_view import gradings, strippings
from core.backends import calibrations
from core.domain.background_job import jobs
from core.domain.outputs import (
    Critique,
    Decision,
    Grading,
    PassageGrade,
    Segment,
    SegmentTree,
    Sentence,
    SentenceFilter,
)
from core.domain.types import Query, Span
from core.engine.request import Request
from core.evaluation.calibration import Case, calibrate
from tests.fakes import MemoryCorpus, ScriptedLLM
from tests.pages.reading import html, shown
from tests.runs import HOSTILE, make_run

LONG = (
    "If the box arrived crushed take photos of all six sides and report it within 48 hours to the depot. "
    "The bakery next door opens at seven and sells rolls, cakes and coffee to everyone who comes by. "
) * 2
EDGES = "edges:{}:crag:{}"


def keep(engine, run):
    engine.store.save(run)
    assert engine.store.flush()
    jobs.clear()
    return run


@pytest.fixture
def page(visit, engine):
    """Open the page about a run, as its address says."""
    return lambda run_id, **params: visit("steps.py?view=Evaluators", run=run_id, **params)


@pytest.fixture
def corrected(engine):
    """A run of a route that grades and acts on it, by the real steps, as the store gives it back."""
    engine.fakes["tiny"] = MemoryCorpus({"crushed:0-400": LONG, "keys:0-80": "Keys are kept at the desk."})
    engine.fake_llm = ScriptedLLM({"grade": "0.95"})
    run = engine.ask(
        Request(Query("My box arrived crushed"), "tiny", ("crag", "bm25"), {"crag": {"evaluator": "llm"}})
    )
    assert [result.status for result in run.results] == ["ok", "ok"]
    assert engine.store.flush()
    jobs.clear()
    return engine.store.load(run.id)


def slider(app, key):
    return next(one for one in app.slider if one.key == key)


def test_a_run_that_graded_and_decided_nothing_names_routes_that_do(page, engine):
    base = make_run(mishaps=False, run_id="plain", corpus="tiny")
    keep(engine, replace(base, results=base.results[:3]))
    app = page("plain")
    assert app.subheader[0].value == "No route of this run graded or decided anything"
    assert "Run a question with a route that does: " in shown(app)
    assert "CRAG" in shown(app), "a route of the corrective family"


# Words first.


def test_it_begins_with_what_was_graded_and_decided(page, corrected):
    app = page(corrected.id)
    first = html(app).split("\n")[0]
    assert "Graded passages: 2, in 1 steps of 1 routes." in first
    assert "<b>CRAG</b>: correct → use what was found" in first
    assert [one.label for one in app.tabs] == ["Grades", "Decisions", "Passed and dropped"]
    assert "Not in this run: drafts, branches." in shown(app)


# Thresholds.


def test_moving_a_threshold_decides_anew_at_once(page, corrected):
    (grading,) = gradings(corrected.results[0])
    assert grading.output.decision == "correct"
    app = page(corrected.id)
    assert "decided: correct" in html(app)
    assert grading.output.why in html(app)
    assert "with these" not in html(app)
    assert "trusted" in html(app)
    key = EDGES.format(corrected.id, grading.span.id)
    slider(app, key).set_value((0.5, 0.99)).run()
    assert not app.exception
    assert "with these: ambiguous" in html(app)
    assert "decision changes" in html(app)
    assert "then: add the web" in html(app)
    assert app.query_params["thresholds"] == "0.500-0.990"
    assert "The dotted line is the stored threshold." in shown(app)
    slider(app, key).set_value((0.98, 0.99)).run()
    assert "with these: incorrect" in html(app)
    assert "all 2 graded passages are dropped" in html(app)
    app.button(key=f"as_stored:crag:{grading.span.id}").click().run()
    assert "with these" not in html(app)
    assert "thresholds" not in app.query_params


def test_what_was_tried_is_kept_for_the_next_run(page, corrected):
    app = page(corrected.id, thresholds="0.000-0.990")
    assert "high = 0.99, low = 0.001" in shown(app), "0 would be the calibrated one"
    app.button(key="keep_parameters").click().run()
    assert not app.exception
    parameters = app.session_state["parameters"]["crag"]
    assert (parameters["low"], parameters["high"], parameters["evaluator"]) == (0.001, 0.99, "llm")
    assert "Set for the next run: CRAG" in shown(app)


def test_the_address_reopens_tab_step_and_thresholds(page, corrected):
    app = page(corrected.id, thresholds="0.980-0.990")
    assert "with these: incorrect" in html(app)
    app = page(corrected.id, thresholds="0.990-0.100")
    assert "with these" not in html(app), "no range"
    app = page(corrected.id, tab="Passed and dropped", floor="0.900")
    (step,) = strippings(corrected.results[0])
    assert f"({step.output.kept} in the run)" in html(app)


def test_every_tab_draws_and_hostile_text_is_text(page, stored, engine):
    run = stored["evil"]
    made = Span(900, None, HOSTILE[2], "AGENT", 0, 3, {}, Decision(HOSTILE[1], (HOSTILE[2],), HOSTILE[0]))
    cut = replace(made, id=901, output=SentenceFilter((Sentence(HOSTILE[0], HOSTILE[0], 0.4, True),), 0.3))
    draft = replace(
        made, id=902, output=Critique(HOSTILE[0], (), None, HOSTILE[1], None, HOSTILE[1], (), HOSTILE[2])
    )
    branch = Segment(HOSTILE[2], HOSTILE[0], 0.2, score=1.5, chosen=True)
    tree = replace(made, id=903, output=SegmentTree(HOSTILE[0], "", (branch,), {}))
    grades = (PassageGrade(HOSTILE[0], 0.4, "scored", HOSTILE[1]),)
    odd = replace(
        made,
        id=904,
        kind="EVALUATOR",
        name=HOSTILE[1],
        args={"low": 0.9, "high": "x"},
        output=Grading(grades, 0.9, float("inf"), "correct", "", ()),
    )
    spans = (*run.results[0].spans, made, cut, draft, tree, odd)
    keep(engine, replace(run, results=(replace(run.results[0], spans=spans), *run.results[1:])))
    app = page("evil")
    assert len(app.tabs) == 5
    for tab in ("Grades", "Decisions", "Passed and dropped", "Drafts", "Branches"):
        app.session_state["evaluators_tab"] = tab
        app.run()
        assert not app.exception, (tab, app.exception)
        text = html(app)
        for mark in ("<img", "<script", "<svg", 'onmouseover="alert', "</style></div><svg"):
            assert mark not in text, (tab, mark)
        assert "&lt;img" in text


# Decisions.


def test_decisions_are_told_in_order_with_the_ways_not_taken(page, engine):
    run = make_run(run_id="decided", corpus="tiny")
    why = "the best grade, 0.940, is at least 0.900"
    act = Decision("use what was found", ("use what was found", "knowledge gap"), why)
    made = Span(900, None, "round 1", "AGENT", 0, 3, {}, act)
    inner = replace(made, id=901, parent=900)
    changed = replace(run.results[0], spans=(*run.results[0].spans, made, inner))
    keep(engine, replace(run, results=(changed, *run.results[1:])))
    text = html(page("decided", tab="Decisions"))
    assert text.count("</span>round 1<span") == 1, "what is inside a decision is not told again"
    assert 'title="not taken">knowledge gap' in text
    assert why in text


def test_a_decision_that_an_audit_forced_says_so(page, engine):
    engine.fake_llm = ScriptedLLM({"evidence": {"Yes": 0.6, "No": 0.4}, "answer": "So [1]."})
    step = "is the answer in the passages"
    request = Request(Query("fragile"), "tiny", ("bm25",), answers="all", forced={step: "abstain"})
    run = keep(engine, engine.ask(request))
    text = html(page(run.id, tab="Decisions"))
    assert "Forced by an audit: on its own the step decided “answer”." in text
    assert "abstain (forced)" in text
    assert "P(Yes) 0.60 is at least 0.58" in text, "what was measured stays"


def test_one_threshold_is_tried_on_every_route_that_has_it(page, engine):
    engine.fake_llm = ScriptedLLM({"evidence": {"Yes": 0.6, "No": 0.4}, "answer": "So [1]."})
    run = keep(engine, engine.ask(Request(Query("fragile"), "tiny", ("bm25", "dense"), answers="all")))
    app = page(run.id, tab="Decisions")
    assert "At 0.58 all 2 decisions for this question stay the same." in shown(app)
    assert "P(Yes) 0.60 is at least 0.58" in html(app)
    app.slider[0].set_value(0.7).run()
    assert "At 0.7 2 of 2 decisions would change (to abstain): BM25, Dense." in shown(app)
    assert "abstain" in html(app)
    assert app.query_params["gate_at"] == "0.700"


# How far grades can be trusted.


def test_grades_come_with_how_reliable_they_are(page, engine):
    run = engine.ask(Request(Query("How do I send a fragile item back?"), "tiny", ("crag",)))
    app = page(keep(engine, run).id)
    assert "decided: " in html(app)
    assert [one.label for one in app.expander if "reliable" in one.label]
    assert "checked on 102 questions of support" in shown(app)


def test_a_models_judgement_comes_with_what_it_is_worth(page, engine):
    cases = [Case(of, f"{of}{n}", 0.2 + 0.02 * n, n > 8) for of in ("one", "two") for n in range(16)]
    made = calibrate("evidence", engine.llm().model, cases)
    calibrations.write(made, engine.settings.home / "calibrations")
    run = engine.ask(Request(Query("How do I send a fragile item back?"), "tiny", ("self_reflective",)))
    app = page(keep(engine, run).id)
    assert [one.label for one in app.expander if "judgements are" in one.label]
    told = "evidence: AUC 1.00 [1.00, 1.00] on 32 cases of one, two with scripted; threshold 0.37; "
    assert told + "balanced accuracy by the threshold of the other sets: one 1.00, two 1.00." in shown(app)
