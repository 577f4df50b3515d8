"""Other thresholds on grades that were given: hand-worked, and against what the steps themselves decide."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.answers import decisions
from core.analysis.grades import decided, findings, held
from core.analysis.run_view import Recorded, gradings, strippings
from core.analysis.what_if.grading import (
    again,
    at,
    bands,
    by_best,
    by_mean,
    floor_of,
    gates,
    nears,
    reaching,
    refloored,
)
from core.analysis.what_if.parameters import threshold_parameters
from core.domain.errors import BadInput
from core.domain.outputs import NOTHING, Decision, Grading, PassageGrade, Round, Selection
from core.domain.types import Query, RouteResult, Span
from core.engine.request import Request
from core.evaluation.tuning.batch_run import follows
from core.routes.registry import routes
from tests.fakes import FakeEngine, ScriptedLLM
from tests.runs import make_run
from tests.unit.analysis.test_passage_trace import GRADED, KEPT, SPARSE, route
from ui.charts.grades import describe_strip, grade_strip

DROPPED = route([SPARSE, GRADED, KEPT], "ac")
TEXTS = {
    "crushed:0-400": "If the box arrived crushed take photos of all six sides and report it within 48 hours. "
    "The bakery next door opens at seven and sells rolls, cakes and coffee to everyone who comes by. " * 3,
    "keys:0-80": "Keys are kept at the desk.",
    "vase:0-50": "A vase is fragile.",
}
QUESTION = "My box arrived crushed"
value = st.one_of(st.none(), st.floats(0, 1), st.just(float("nan")))
grade_lists = st.lists(value, max_size=8).map(
    lambda values: tuple(PassageGrade(f"p{n}", one, "scored") for n, one in enumerate(values))
)
edges = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


def some(*values):
    return tuple(
        PassageGrade(f"p{n}", one, "error" if one is None else "scored") for n, one in enumerate(values)
    )


@pytest.fixture
def asked(tmp_path):
    """Run one route over a tiny corpus by the real steps; the result has its spans."""

    def ask(route, replies=None, answers="none", style=None, **parameters):
        engine = FakeEngine(tmp_path, texts=TEXTS, llm=ScriptedLLM(replies or {}))
        more = {"style": style} if style else {}
        run = engine.ask(
            Request(Query(QUESTION), "tiny", (route,), {route: parameters}, answers=answers, **more)
        )
        (result,) = run.results
        assert result.status == "ok", result.error
        return result

    return ask


@given(grade_lists, edges, st.floats(0, 1))
def test_grades_are_in_their_bands_and_raising_high_never_trusts_more(grades, pair, more):
    found = bands(grades, *pair)
    low, high = pair
    values = [[one.grade for one in some] for some in (found.above, found.between, found.below)]
    whole = sorted((one.grade for one in grades if one.grade is not None and one.grade >= 0), reverse=True)
    assert [grade for some in values for grade in some] == whole, "the highest first"
    assert values[0] == [grade for grade in whole if grade >= high]
    assert values[2] == [grade for grade in whole if grade < low]
    assert len(whole) + len(found.without) == len(grades)
    now = at(grades, low, high)
    higher = at(grades, low, max(high, more))
    assert not (higher.decision == "correct" and now.decision != "correct")
    lower = at(grades, min(low, more), high)
    assert not (lower.decision == "incorrect" and now.decision != "incorrect")


def test_thresholds_decide_by_the_best_grade():
    for low, high, decision in (
        (0.2, 0.9, "correct"),
        (0.2, 0.95, "ambiguous"),
        (0.94, 0.95, "ambiguous"),
        (0.945, 0.95, "incorrect"),
    ):
        found = at(some(0.94, 0.71, None, 0.08), low, high)
        assert found.decision == decision
        assert "0.940" in found.why
        assert "1 of 4 passages have no grade" in found.why
    with pytest.raises(BadInput, match=r"0\.9 is above the upper one 0\.2"):
        at(some(0.5), 0.9, 0.2)


@pytest.mark.parametrize("evaluator", ["lightweight", "llm"])
def test_the_stored_decision_follows_from_the_stored_grades(asked, evaluator):
    result = asked("crag", {"grade": "0.95"}, evaluator=evaluator)
    (step,) = gradings(result)
    grading = step.output
    assert by_best(grading)
    assert by_mean(grading) is None
    assert grading.evaluator == evaluator
    found = at(grading.grades, grading.low, grading.high)
    assert (found.decision, found.why) == (grading.decision, grading.why)
    assert not by_best(replace(grading, decision="correct" if grading.decision != "correct" else "incorrect"))
    assert not by_best(replace(grading, low=0.9, high=0.1))
    assert not by_best(replace(grading, decision="try again"))


def test_what_follows_from_other_thresholds_is_what_the_route_does(asked):
    result = asked("crag", {"grade": "0.95"}, evaluator="llm")
    (step,) = gradings(result)
    assert step.output.decision == "correct"
    acts = [
        follows(result, step, at(step.output.grades, low, high)).decision
        for low, high in ((0.1, 0.9), (0.1, 0.99), (0.98, 0.99))
    ]
    assert acts == ["use what was found", "add the web", "replace it by the web"]
    other = Recorded(replace(step.span, id=step.span.id - 1), step.output)
    assert follows(result, other, at(step.output.grades, 0.1, 0.9)) is None, "it acted on another step"
    lacking = asked("crag", {"grade": "0.05"}, evaluator="llm")
    (step,) = gradings(lacking)
    grading = step.output
    assert follows(lacking, step, at(grading.grades, grading.low, grading.high)).decision == "knowledge gap"
    crag = make_run(mishaps=False).results[-1]
    (step,) = gradings(crag)
    assert follows(crag, step, at(step.output.grades, 0.2, 0.9)) is None, "no step of it acted on the verdict"


def test_a_round_decides_by_its_mean_and_one_whose_numbers_do_not_give_its_decision_has_no_rule():
    judged = Round("q", 2.3, None, 1, 2.5, 0.1, 2)
    assert again(judged, judged.threshold, judged.gain)[0] == "try again"
    assert again(judged, 2.2, 0.1) == ("enough", "good enough")
    second = Round("q", 2.3, 2.3, 2, 2.5, 0.1, 2)
    assert again(second, 2.5, 0.1) == ("stop", "no gain")
    assert again(second, 2.5, 0.0) == ("stop", "rounds used up")
    judged = Round("q", 2.0, 1.5, 2, 2.5, 0.1, 3)
    grading = Grading(some(0.2), 0.4, 0.4, "try again", "", (), round=judged)
    assert by_mean(grading) == judged
    for odd in ({"mean": 2.6}, {"mean": None}, {"before": 1.95}, {"number": 3}, {"rounds": 1}):
        assert by_mean(replace(grading, round=replace(judged, **odd))) is None
    assert by_mean(replace(grading, round=None)) is None


def test_what_a_grader_that_did_not_end_gave_until_then_is_kept(asked):
    result = asked("crag", {"grade": "0.95"}, evaluator="llm")
    (step,) = gradings(result)
    broken = replace(step.span, output=NOTHING, error="the route's time is up")
    spans = tuple(broken if span is step.span else span for span in result.spans)
    (found,) = gradings(replace(result, spans=spans))
    assert found.output.grades == step.output.grades
    assert (found.output.low, found.output.high) == (step.output.low, step.output.high)
    assert (found.output.decision, by_best(found.output)) == ("", False)


def test_every_kind_of_decision_by_one_score_is_decided_again(asked):
    writes = {"evidence": {"Yes": 0.6, "No": 0.4}, "answer": "So [1]."}
    (gate,) = gates(asked("bm25", writes, answers="all"))
    assert gate.score == pytest.approx(0.6)
    assert (gate.threshold, gate.decision) == (0.58, "answer")
    assert [gate.decide(one) for one in (0.5, gate.score, 0.61)] == ["answer", "answer", "abstain"]
    unsure = asked("confidence", {**writes, "closed-answer": "Tuesday.", "confidence": "70"}, threshold=0.9)
    first = gates(unsure)[0]
    assert (first.span.name, first.score, first.decision) == ("decide by confidence", 0.7, "retrieve")
    assert first.decide(0.7) == "answer without retrieval"
    unknown = asked("confidence", {"closed-answer": "unknown", "answer": "So [1]."}, threshold=0.9)
    assert "decide by confidence" not in [gate.span.name for gate in gates(unknown)]
    judged = {"relevant": "0.6", "supported": {"fully": 1.0}, "useful": {"4": 1.0}}
    (looked,) = gates(asked("critique_loop", {**judged, "look-up": "0.7"}, search_from=0.5))
    assert (looked.score, looked.decision) == (0.7, "retrieve")
    assert (looked.decide(0.7), looked.decide(0.8)) == ("retrieve", "no retrieval")


def gated(output):
    span = Span(1, None, "s", "EVALUATOR", 0, 1, {}, output)
    return gates(RouteResult("r", "R", "ok", 1.0, spans=(span,)))


def test_scores_that_do_not_give_the_decision_again_are_left_out():
    good = Decision("answer", ("answer", "abstain"), "", 0.7, 0.5)
    assert len(gated(good)) == 1
    for odd in (
        {"score": 0.3},
        {"score": None},
        {"score": float("nan")},
        {"threshold": None},
        {"decision": "maybe"},
        {"ways": ("answer",)},
    ):
        assert gated(replace(good, **odd)) == []


def test_passages_and_strips_at_another_floor(asked):
    result = asked("compress", floor=-1.0, strip_floor=0.3)
    (near,) = nears(result)
    cosines = near.output.cosines
    assert reaching(near.output, -1.0) == tuple(cosines)
    assert [id for id, _ in near.span.hits] == list(cosines)
    best = max(cosines.values())
    assert [id for id, score in cosines.items() if score == best] == list(reaching(near.output, best))
    step = strippings(result)[0].output
    assert floor_of(step) == 0.3
    dropped = replace(step, sentences=(*step.sentences[:-1], replace(step.sentences[-1], kept=False)))
    assert floor_of(dropped) is None, "its floor does not give again what was kept"
    assert refloored(step, 0.3) == step
    assert refloored(step, -1.0).kept == len(step.sentences)
    unscored = replace(step, sentences=(replace(step.sentences[0], score=None), *step.sentences[1:]))
    assert refloored(unscored, 0.3) is None
    again_ = strippings(asked("compress", floor=-1.0, strip_floor=0.6))[0].output
    assert refloored(step, 0.6).sentences == again_.sentences, "as the step itself does with that floor"
    for pieces in refloored(step, 1.1).by_passage.values():
        best = max(piece.score for piece in pieces)
        assert {piece.score for piece in pieces if piece.kept} == {best}, "each passage keeps its best"


def test_the_ways_not_taken_are_those_the_step_declares_and_a_kept_round_is_a_decision(asked):
    told_ = {
        one.span.name: one.output for one in decisions(asked("crag", {"grade": "0.95"}, evaluator="llm"))
    }
    assert told_["grade and decide"].ways == ("correct", "ambiguous", "incorrect")
    assert told_["act on the grades"].ways[-1] == "knowledge gap"
    gated_ = decisions(asked("hyde_gated", {"hypothesize": "A passage."}))
    assert [one.output.ways for one in gated_] == [("hybrid", "hyde")]
    assert all(one.output.decision in one.output.ways for one in gated_)
    replies = {"evidence": {"Yes": 0.2, "No": 0.8}, "reformulate": "Another?"}
    kept = decisions(asked("self_reflective", replies, rounds=2))[-1]
    assert (kept.span.name, kept.output.decision) == ("keep the best round", "round 1 of 2")
    assert isinstance(kept.output, Selection)
    assert decisions(asked("mmr")) == []


def test_thresholds_become_the_parameters_of_their_own_step(asked):
    crag = asked("crag", evaluator="lightweight")
    (grading,) = gradings(crag)
    assert crag.parameters["high"] == 0.0 < grading.output.high, "as calibrated"

    def kept(result, span, changes):
        return threshold_parameters(routes()[result.route], span, changes)

    assert kept(crag, grading.span, {"high": 0.7}) == {"high": 0.7}
    assert kept(crag, grading.span, {"low": 0.0}) == {"low": 0.001}, "0 stands for the calibrated one"
    assert kept(crag, grading.span, {}) == {}
    assert kept(crag, grading.span, {"unheard of": 0.7}) is None
    with pytest.raises(BadInput, match="high"):
        kept(crag, grading.span, {"high": 7.0})
    (step,) = strippings(crag)
    assert kept(crag, step.span, {"floor": 0.4}) == {"strip_floor": 0.4}
    writes = {"evidence": {"Yes": 0.6, "No": 0.4}, "answer": "So [1].", "closed-answer": "Tuesday."}
    unsure = asked("confidence", {**writes, "confidence": "50"}, threshold=0.58)
    first, second = gates(unsure)
    assert (first.threshold, second.threshold) == (0.58, unsure.parameters["threshold"])
    assert (first.span.name, second.span.name) == ("decide by confidence", "is the answer in the passages")
    assert kept(unsure, first.span, {"threshold": 0.5}) == {"threshold": 0.5}
    other = kept(unsure, second.span, {"threshold": 0.5})
    assert other is None, (
        "the route's parameter of that name is another step's, though their values are equal"
    )


def test_the_first_words_tell_dropped_and_wrongly_trusted_passages():
    run = make_run(mishaps=False)
    (grading,) = gradings(run.results[-1])
    ids = [one.id for one in grading.output.grades]
    (trusted,) = findings(run, {ids[0]: 0, ids[4]: 3})
    assert "0 of 1 have no label" in trusted
    assert "(0.940)" in trusted
    assert findings(run, {ids[0]: 3, ids[3]: 2, ids[4]: 1}) == findings(run, {}) == []
    lost = replace(run.results[0], spans=DROPPED.spans, hits=DROPPED.hits, origin=DROPPED.origin)
    told, *_ = findings(replace(run, results=(lost,)), {"b": 3})
    assert told.startswith(f"{lost.title}, “b”: ")
    assert told.endswith("graded 0.08 by “grade”, below 0.20, and “keep by grade” dropped it.")
    assert held(run) == "Graded passages: 5, in 1 steps of 1 routes."
    assert held(replace(run, results=run.results[:1])) == "No route in this run graded passages."

    spans = tuple(
        Span(n, None, "s", "CHAIN", 0, 1, {}, Decision(word, (), ""))
        for n, word in enumerate(("go on", "go on", "stop", "a", "b", "c"), 1)
    )
    run = replace(run, results=(replace(run.results[0], spans=spans),))
    assert [line for _, line in decided(run)] == ["go on (2 times) → stop → a → b → 1 more"]


def test_the_chart_draws_every_grade_once():
    grades = some(0.94, 0.71, None, 0.33, 0.08)
    figure = grade_strip(grades, {"p0": "<b>A</b>"}, {"p4": 3}, 0.3, 0.8, (0.2, 0.8))
    drawn = sorted(x for trace in figure.data for x in trace.x)
    assert drawn == [0.08, 0.33, 0.71, 0.94]
    assert [trace.name for trace in figure.data] == ["trusted", "in between", "doubted"]
    assert list(figure.data[2].marker.symbol) == ["diamond"]
    assert figure.layout.yaxis.ticktext[-1] == "<b>p4  ◆3</b>"
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;A&lt;/b&gt;"
    lines = [(line.x0, line.line.dash) for line in figure.layout.shapes]
    assert lines == [(0.3, None), (0.2, "dot"), (0.8, None)], "the stored ones where they differ"
    assert describe_strip(grades, {"p4": 3}, 0.3, 0.8, "correct") == (
        "Passages graded 0.8 or higher: 1, in between: 2, below 0.3: 1, without a grade: 1; ◆ marks 1 "
        "labelled. Decision: correct."
    )


@pytest.mark.parametrize("models", [True, False])
def test_a_run_without_models_asks_neither_a_model_nor_the_web(tmp_path, models):
    web = {"web/a:0-40": "A crushed box is photographed."}
    engine = FakeEngine(tmp_path, texts=TEXTS, web=web)
    parameters = {"crag": {"low": 0.998, "high": 0.999}}  # nothing that was found is trusted
    run = engine.ask(Request(Query(QUESTION), "tiny", ("crag",), parameters, models=models))
    (result,) = run.results
    (grading,) = gradings(result)
    assert result.status == "ok"
    assert grading.output.decision == "incorrect"
    assert bool(engine.fake_llm.requests) == models, "keywords for the web are asked of the model"
    assert any(span.name == "search the web" for span in result.spans) == models
    (failed,) = engine.ask(Request(Query(QUESTION), "tiny", ("hyde",), models=False)).results
    assert failed.status == "unavailable"
    assert "does not call a model" in failed.error
