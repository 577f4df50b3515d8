"""Charts, and what is read out of a run for them: checked against the run's own numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.run_view import asked_again, describe, gradings, reuse, source
from core.analysis.searches import rewrites
from core.domain.format import milliseconds
from core.domain.outputs import NOTHING, Reply, Rewrite, Written
from core.domain.rank_changes import moves
from core.domain.types import Hit, Link, Passage, RouteResult, Span
from tests.runs import IMAGINED, MODEL, QUESTION, STANDALONE, VARIANTS, make_run
from ui.charts import style
from ui.charts.style import KINDS
from ui.charts.waterfall import waterfall


def hits(ids):
    return tuple(Hit(Passage(id, id, id, id), 1 / n) for n, id in enumerate(ids, 1))


RUN = make_run(mishaps=False)
BAD = make_run()


def route(run, name):
    return next(result for result in run.results if result.route == name)


# Moves: worked by hand.


def test_moves_by_hand():
    found = moves(hits("abcdef"), hits("bagcfd"), 4)
    told = {id: (move.kind, move.by, move.was) for id, move in found.of.items()}
    assert told == {"b": ("better", 1, 2), "a": ("worse", 1, 1), "g": ("new", 0, None), "c": ("worse", 1, 3)}
    assert found.lost == ("d",)
    assert dict(found.counts) == {"better": 1, "worse": 2, "same": 0, "new": 1}


@given(st.permutations("abcdefgh"), st.permutations("abcdefgh"), st.integers(1, 10))
def test_moves_account_for_every_passage(before, after, depth):
    found = moves(hits(before), hits(after), depth)
    assert set(found.of) == set(after[:depth])
    assert set(found.lost) == set(before[:depth]) - set(after[:depth])
    assert sum(found.counts.values()) == len(after[:depth])
    for id, move in found.of.items():
        if move.kind != "new":
            sign = {"better": -1, "worse": 1, "same": 0}[move.kind]
            assert before.index(id) + sign * move.by == after.index(id)


# Reading spans.


def test_rewrites_are_what_was_searched_with():
    one = [rewrite for _, rewrite in rewrites(route(RUN, "rewrite"))]
    assert [(r.before, r.texts, r.single) for r in one] == [(QUESTION, (STANDALONE,), True)]
    several = [rewrite for _, rewrite in rewrites(route(RUN, "rag_fusion"))]
    assert [(r.texts, r.single) for r in several] == [(tuple(VARIANTS), False)]
    assert [r.texts for _, r in rewrites(route(RUN, "hyde"))] == [(IMAGINED,)]
    assert rewrites(route(RUN, "bm25")) == []


def test_an_answer_is_no_rewriting():
    span = Span(1, None, "write answer", "LLM", 0, 5, {"text": "q"}, Written("It is so [1]."))
    other = replace(span, output=Rewrite("q", ("It is so [1].",), "question"))
    assert rewrites(RouteResult("r", "R", "ok", 5, answer="It is so [1].", spans=(span,))) == []
    assert rewrites(RouteResult("r", "R", "ok", 5, answer="It is so [1].", spans=(other,))) != []


def test_gradings_keep_three_states():
    (step,) = gradings(route(RUN, "crag"))
    grading = step.output
    assert [grade.grade for grade in grading.grades] == [0.94, 0.71, None, 0.33, 0.08]
    assert grading.grades[2].state == "error"
    assert (grading.low, grading.high, grading.decision) == (0.2, 0.9, "correct")


def test_grades_given_before_a_step_ended_are_kept():
    crag = route(RUN, "crag")
    spans = tuple(
        replace(s, output=NOTHING, error="time is up") if "decide" in s.name else s for s in crag.spans
    )
    (step,) = gradings(replace(crag, spans=spans))
    assert [grade.grade for grade in step.output.grades] == [0.94, 0.71, None, 0.33, 0.08]
    assert (step.output.low, step.output.high, step.output.decision) == (0.2, 0.9, "")


def test_reuse_adds_up_by_reason():
    shared = reuse(RUN, route(RUN, "hybrid_rrf"))
    assert shared.shared_ms == pytest.approx(1.4 + 3.1 + 2.2)
    assert (shared.recorded_ms, shared.cached_ms, shared.model) == (0, 0, None)
    recorded = reuse(RUN, route(RUN, "rewrite"))
    assert (recorded.recorded_ms, recorded.model, recorded.made[:10]) == (1430, MODEL, "2026-11-18")
    assert reuse(RUN, route(RUN, "rag_fusion")).cached_ms == 2210
    first = route(RUN, "rewrite").spans[0]
    assert first.cached is None
    assert source(route(RUN, "rewrite"), first) == "recording"


def test_a_second_try_of_the_model_is_told():
    def call(id, attempt, text):
        return Span(id, 1, "ask m", "LLM", 0, 4, {"attempt": attempt}, Reply(text))

    first = Span(1, None, "write", "LLM", 0, 9, {"text": "q"}, Rewrite("q", ("good",), "question"))
    spans = (first, call(2, 1, "fine"), call(3, 1, "As an AI language model"), call(4, 2, "good"))
    result = RouteResult("r", "R", "ok", 9, spans=spans)
    assert asked_again(result, first) == "As an AI language model"
    assert asked_again(replace(result, spans=spans[:3]), first) is None
    assert asked_again(route(RUN, "rewrite"), route(RUN, "rewrite").spans[0]) is None


def test_what_a_step_was_given_is_told_in_words():
    hybrid = route(RUN, "hybrid_rrf").spans
    fused = hybrid[-1]
    assert [describe(link, hybrid) for link in fused.links] == [
        ("list 1", "search BM25, ranks 1 to 30"),
        ("list 2", "search vectors, ranks 1 to 30"),
    ]
    assert describe(Link("vector", 2, 384), hybrid) == ("vector", "embed")
    assert describe(Link("hits", 1, 5, 20), hybrid) == ("hits", "search BM25, ranks 21 to 25")
    assert describe(Link("hits", 1, 1, 3), hybrid) == ("hits", "search BM25, rank 4")
    assert describe(Link("rest", 1, 0), hybrid) == ("rest", "search BM25, no passage")
    assert describe(Link("lists[1]", None, 3), hybrid) == ("list 2", "made by the route's own code")
    assert describe(Link("hits", 99, 3), hybrid) == ("hits", "step 99, which is not stored")
    twice = (*hybrid, replace(hybrid[0], id=5))
    assert describe(Link("hits", 5, 2), twice) == ("hits", "search BM25 (step 5), ranks 1 to 2")
    assert describe(Link("drafts[2].text", 5, 1), hybrid[:1])[0] == "draft 3.text"


# Colours.


def test_a_kind_of_step_has_one_colour_everywhere():
    seen = {}
    for run in (RUN, BAD):
        for bar in waterfall(run).data:
            if bar.legendgroup:
                seen.setdefault(bar.legendgroup, set()).add(bar.marker.color)
    assert seen
    assert all(colours == {KINDS[kind][1]} for kind, colours in seen.items())
    assert len({colour for _, colour in KINDS.values()}) == len(KINDS)


# What may be in a run.


@pytest.mark.parametrize("dark", [False, True])
def test_hostile_titles_and_errors_bring_no_markup_into_a_chart(dark, monkeypatch):
    monkeypatch.setattr(style, "is_dark", lambda: dark)
    run = make_run(hostile=True)
    text = waterfall(run).to_json()
    assert style.ink() in text
    assert style.ink() == ("#e4e2dd" if dark else "#22262a")
    for mark in ("<img", "<script", "<svg", "</style"):
        assert mark not in text


def test_runs_with_nothing_to_show_draw_empty_charts():
    nothing = replace(RUN, results=(), passages={})
    unavailable = replace(RUN, results=(replace(RUN.results[0], status="unavailable", hits=(), spans=()),))
    for run in (nothing, unavailable):
        assert waterfall(run).layout.height > 0


def test_durations_read_well():
    said = {0: "0.0 ms", 1.44: "1.4 ms", 9.94: "9.9 ms", 9.96: "10 ms", 999.4: "999 ms", 999.6: "1.0 s"}
    said |= {99_900: "99.9 s", 125_000: "2 min 5 s", 119_700: "2 min 0 s"}
    assert {ms: milliseconds(ms) for ms in said} == said
