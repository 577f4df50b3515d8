"""Charts, and what is read out of a run for them: checked against the run's own numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.charts import rank_matrix, waterfall
from core.charts.look import KINDS, milliseconds, words
from core.charts.matrix import contenders, strength
from core.moves import fate, moves, ranks
from core.reading import (
    asked_again,
    found_by_text,
    gradings,
    reuse,
    rewritings,
    source,
    top,
    worked,
)
from core.types import Hit, Passage, RouteResult, Span
from tests.runs import IMAGINED, MODEL, QUESTION, STANDALONE, VARIANTS, make_run, passages, ranking


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
    assert told == {
        "b": ("better", 1, 2),
        "a": ("worse", 1, 1),
        "g": ("new", 0, None),
        "c": ("worse", 1, 3),
    }
    assert found.lost == ("d",)
    assert dict(found.counts) == {"better": 1, "worse": 2, "same": 0, "new": 1}


def test_a_passage_from_below_the_baselines_top_is_new_and_keeps_its_old_rank():
    found = moves(hits("abcd"), hits("dabc"), 2)
    assert (found.of["d"].kind, found.of["d"].was) == ("new", 4)
    assert found.lost == ("b",)


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


def test_a_repeated_passage_counts_at_its_first_rank():
    assert ranks(hits("aba")) == {"a": 1, "b": 2}


def test_fate_tells_the_step_that_lost_a_passage():
    spans = (
        Span(1, None, "search", "RETRIEVER", 0, 1, hits=(("a", 2.0), ("b", 1.0))),
        Span(2, None, "keep by grade", "RERANKER", 1, 1, hits=(("a", 2.0),)),
    )
    result = RouteResult("r", "R", "ok", 2, hits=hits("a"), spans=spans)
    assert fate(result, "a") == "at rank 1"
    assert fate(result, "b") == "rank 2 in “search”, dropped by “keep by grade”"
    assert fate(result, "z") == "not found by any step"


# Reading spans.


def test_rewritings_are_what_was_searched_with():
    one = rewritings(route(RUN, "rewrite"))
    assert [(r.before, r.after, r.single) for r in one] == [(QUESTION, (STANDALONE,), True)]
    several = rewritings(route(RUN, "rag_fusion"))
    assert [(r.after, r.single) for r in several] == [(tuple(VARIANTS), False)]
    assert [r.after for r in rewritings(route(RUN, "hyde"))] == [(IMAGINED,)]
    assert rewritings(route(RUN, "bm25")) == []


def test_an_answer_is_no_rewriting():
    span = Span(1, None, "write answer", "LLM", 0, 5, {"text": "q"}, "It is so [1].")
    assert rewritings(RouteResult("r", "R", "ok", 5, answer="It is so [1].", spans=(span,))) == []
    assert rewritings(RouteResult("r", "R", "ok", 5, answer=None, spans=(span,))) != []


def test_gradings_keep_three_states():
    (grading,) = gradings(route(RUN, "crag"))
    assert [grade.value for grade in grading.grades] == [0.94, 0.71, None, 0.33, 0.08]
    assert grading.grades[2].state == "error"
    assert (grading.low, grading.high, grading.decision) == (0.2, 0.9, "correct")


def test_grades_given_before_a_step_ended_are_kept():
    crag = route(RUN, "crag")
    spans = tuple(
        replace(s, output=None, error="time is up") if "decide" in s.name else s for s in crag.spans
    )
    (grading,) = gradings(replace(crag, spans=spans))
    assert [grade.value for grade in grading.grades] == [0.94, 0.71, None, 0.33, 0.08]
    assert grading.decision == ""


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


def test_variants_own_finds():
    found = found_by_text(route(RUN, "rag_fusion"), 5)
    spans = route(RUN, "rag_fusion").spans
    lists = [{id for id, _ in span.hits[:5]} for span in spans if span.kind == "RETRIEVER"]
    assert found == {VARIANTS[0]: lists[0] | lists[1]}


def test_a_second_try_of_the_model_is_told():
    spans = (
        Span(1, None, "write", "LLM", 0, 9, {"text": "q"}, "good"),
        Span(2, 1, "ask m", "LLM", 0, 4, {"prompt": "variants/1"}, "As an AI language model"),
        Span(3, 1, "ask m", "LLM", 4, 5, {"prompt": "variants/1/firmer"}, "good"),
    )
    result = RouteResult("r", "R", "ok", 9, spans=spans)
    assert asked_again(result, spans[0]) == "As an AI language model"
    assert asked_again(route(RUN, "rewrite"), route(RUN, "rewrite").spans[0]) is None


# Waterfall.


def drawn(figure):
    """(route title, start, length, name) of every bar."""
    return sorted(
        (y, round(base, 6), round(x, 6), data[0])
        for bar in figure.data
        if bar.type == "bar" and bar.customdata is not None
        for y, base, x, data in zip(bar.y, bar.base, bar.x, bar.customdata, strict=True)
    )


def test_every_step_is_a_bar_that_begins_where_it_began():
    expected = sorted(
        (words(r.title, 28), round(s.start_ms / 1000, 6), round(s.ms / 1000, 6), words(s.name, 60))
        for r in RUN.results
        for s in top(r)
    )
    assert drawn(waterfall(RUN)) == expected


def test_a_quick_run_is_drawn_in_milliseconds():
    quick = replace(RUN, results=RUN.results[:3])
    assert ("BM25", 0.0, 1.4, "search BM25") in drawn(waterfall(quick))


def test_routes_are_sorted_quickest_first():
    order = list(waterfall(RUN).layout.yaxis.categoryarray)
    expected = [words(r.title, 28) for r in sorted(RUN.results, key=lambda r: r.ms)]
    assert order == expected


def test_retrieval_only_leaves_out_the_model_and_closes_its_gap():
    bars = drawn(waterfall(RUN, retrieval_only=True))
    mine = [bar for bar in bars if bar[0] == "Rewrite + hybrid"]
    assert [bar[1] for bar in mine] == pytest.approx([0.0, 1.4, 4.5, 6.7])
    assert not any("rewrite" in bar[3] or "variants" in bar[3] for bar in bars)


def test_shared_cached_and_failed_steps_are_told_apart():
    shapes, lines = {}, {}
    for bar in waterfall(BAD).data:
        if bar.type == "bar" and bar.customdata is not None:
            marks = zip(bar.y, bar.customdata, bar.marker.pattern.shape, bar.marker.line.color, strict=True)
            for y, data, shape, line in marks:
                shapes[y, data[0]], lines[y, data[0]] = shape, line
    assert shapes["BM25", "search BM25"] == ""
    assert shapes["Hybrid (RRF)", "search BM25"] == "/"
    assert shapes["Rewrite + hybrid", "rewrite as a standalone question"] == "."
    assert lines["HyDE", "write hypothetical passages"] == "#D55E00"


def test_a_kind_of_step_has_one_colour_everywhere():
    seen = {}
    for run in (RUN, BAD):
        for dark in (False, True):
            for bar in waterfall(run, dark=dark).data:
                if bar.legendgroup:
                    seen.setdefault(bar.legendgroup, set()).add(bar.marker.color)
    assert seen
    assert all(colours == {KINDS[kind][1]} for kind, colours in seen.items())
    assert len({colour for _, colour in KINDS.values()}) == len(KINDS)


# Rank matrix.


def test_the_matrix_shows_the_runs_ranks():
    figure = rank_matrix(RUN, depth=10)
    heat = figure.data[0]
    ids = contenders(RUN, depth=10, limit=40)
    for row, id in enumerate(ids):
        for column, result in enumerate(worked(RUN)):
            rank = ranks(result.hits).get(id)
            assert heat.text[row][column] == ("" if rank is None else str(rank))
    assert set(ids) == {h.passage.id for r in RUN.results for h in r.hits[:10]}


def test_higher_is_stronger_and_below_the_top_is_faint():
    values = [strength(rank, 10) for rank in range(1, 12)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0
    assert values[-1] < 0.1 < values[-2]


def test_gold_rows_are_marked_with_their_grade():
    id = contenders(RUN, depth=10, limit=40)[0]
    labels = rank_matrix(RUN, gold={id: 3}).layout.yaxis.ticktext
    assert labels[0].startswith("<b>")
    assert labels[0].endswith("◆3</b>")
    assert not any("◆" in label for label in labels[1:])


def test_the_matrix_is_cut_to_its_limit_best_first():
    figure = rank_matrix(RUN, depth=20, limit=7)
    assert len(figure.data[0].text) == 7


# What may be in a run.


@pytest.mark.parametrize("dark", [False, True])
def test_hostile_titles_and_errors_bring_no_markup_into_a_chart(dark):
    run = make_run(hostile=True)
    for figure in (rank_matrix(run, dark=dark), waterfall(run, dark=dark)):
        text = figure.to_json()
        for mark in ("<img", "<script", "<svg", "</style"):
            assert mark not in text


def test_runs_with_nothing_to_show_draw_empty_charts():
    nothing = replace(RUN, results=(), passages={})
    unavailable = replace(RUN, results=(replace(RUN.results[0], status="unavailable", hits=(), spans=()),))
    for run in (nothing, unavailable):
        assert waterfall(run).layout.height > 0
        assert rank_matrix(run).layout.height > 0


def test_a_passage_that_the_run_does_not_hold_is_named_by_its_id():
    run = replace(RUN, passages={})
    assert rank_matrix(run).layout.yaxis.ticktext[0] == contenders(run, depth=10, limit=40)[0][:40]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 ms"),
        (1.44, "1.4 ms"),
        (9.94, "9.9 ms"),
        (9.96, "10 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (99_900, "99.9 s"),
        (125_000, "2 min 5 s"),
        (119_700, "2 min 0 s"),
    ],
)
def test_durations_read_well(ms, text):
    assert milliseconds(ms) == text


def test_the_made_run_is_like_a_real_one():
    assert len(RUN.results) == 8
    assert all(20 <= len(result.hits) <= 50 for result in RUN.results)
    assert {result.status for result in BAD.results} == {"ok", "failed", "timeout", "unavailable"}
    assert ranking(passages(), 1, 30) == ranking(passages(), 1, 30)
