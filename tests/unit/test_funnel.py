"""Fates of passages against hand-made spans, one for each kind, and against the final rankings of routes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engine import Request
from core.flow import Flow
from core.funnel import Funnel
from core.held import held
from core.route import routes
from core.types import Hit, Passage, Query, RouteResult, Span
from tests.fakes import FakeEngine
from tests.runs import make_run


def scored(*ids):
    return tuple((id, 1 / rank) for rank, id in enumerate(ids, 1))


def ranking(*ids):
    return tuple(Hit(Passage(id, "d", "T", "t"), score) for id, score in scored(*ids))


def span(number, name, kind, ids=None, *, inputs=None, output=None, parent=None, error=None):
    hits = None if ids is None else scored(*ids)
    return Span(number, parent, name, kind, number, 1.0, inputs or {}, output, hits, error=error)


def route(spans, final, **more):
    return RouteResult(
        "r", "R", more.pop("status", "ok"), 5.0, hits=ranking(*final), spans=tuple(spans), **more
    )


SPARSE = span(1, "search BM25", "RETRIEVER", "abcdef", inputs={"text": "why", "k": 100})
EMBED = span(2, "embed", "EMBEDDING", inputs={"text": "why"}, output="384 vector")
DENSE = span(3, "search vectors", "RETRIEVER", "fghaij", inputs={"vector": "384 vector"})
FUSED = span(4, "fuse", "CHAIN", "afbgchidej", inputs={"lists": [1, 3]})


def fate(result, id, depth=3):
    return Funnel(result).fate(id, depth)


def test_found_with_its_rank():
    one = fate(route([SPARSE], "abcdef"), "b")
    assert (one.kind, one.rank, one.step) == ("found", 2, None)
    assert one.words == "At rank 2 of the top 3."


def test_found_too_low_by_every_list():
    one = fate(route([SPARSE], "abcdef"), "e")
    assert (one.kind, one.rank, one.was, one.step) == ("found too low", 5, 5, SPARSE)
    assert one.words == "Found too low: at 5 in “search BM25”, the best of its searches."


def test_never_retrieved_names_the_searches_and_what_they_searched_with():
    one = fate(route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej"), "z")
    assert (one.kind, one.rank, one.step) == ("never retrieved", None, None)
    assert (
        one.words
        == "Not found by “search BM25” for “why” (6 passages), “search vectors” for “why” (6 passages)."
    )
    assert fate(route([SPARSE], "abcdef"), "z").step == SPARSE
    assert "Only a search of the conversation" in fate(route([SPARSE], "abcdef"), "memory/s/1").words
    assert "Only a web search" in fate(route([SPARSE], "abcdef"), "web/a.md:0-1").words


def test_fused_away_tells_the_rank_in_each_list():
    one = fate(route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej"), "g")
    assert (one.kind, one.rank, one.was, one.step) == ("fused away", 4, 2, FUSED)
    assert one.words == "At 2 in “search vectors”, not in 1 of 2 lists; “fuse” put it at 4."
    both = fate(route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej"), "a", 1)
    assert both.kind == "found"


def test_fused_away_where_the_fusion_was_taken_over_from_another_route():
    shared = replace(FUSED, inputs={"lists": ["6 hits", "6 hits"]})
    result = route([SPARSE, EMBED, DENSE, shared], "afbgchidej")
    assert [source.span for source in Flow(result).sources(shared)] == [SPARSE, DENSE]
    assert fate(result, "g").words == fate(route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej"), "g").words


RERANKED = span(5, "rerank", "RERANKER", "gfab", inputs={"hits": "4 hits"})
APPENDED = span(6, "append the rest", "CHAIN", "gfabchidej", inputs={"first": "4 hits", "rest": "10 hits"})
STEPS = [SPARSE, EMBED, DENSE, FUSED, RERANKED, APPENDED]


def test_cut_by_the_reranker_before_and_after():
    one = fate(route(STEPS, "gfabchidej"), "b")
    assert (one.kind, one.rank, one.was, one.step) == ("reranked away", 4, 3, RERANKED)
    assert one.words == "At 3 in “fuse”; “rerank” put it at 4."


def test_a_step_that_lifts_a_passage_not_far_enough_is_not_blamed():
    lifted = span(2, "rerank", "RERANKER", "abcfde", inputs={"hits": "6 hits"})
    one = fate(route([SPARSE, lifted], "abcfde"), "f")
    assert (one.kind, one.rank, one.was, one.step) == ("found too low", 4, 6, SPARSE)
    assert one.words == "Found too low: at 6 in “search BM25”, the best of its searches; it ends at rank 4."


def test_outside_the_candidates_of_the_reranker():
    one = fate(route(STEPS, "gfabchidej"), "e")
    assert (one.kind, one.rank, one.was, one.step) == ("reranked away", 9, 9, RERANKED)
    assert one.words == "At 9 in “fuse”, and “rerank” looked at the first 4 only: it ends at rank 9."
    lost_before = fate(route(STEPS, "gfabchidej"), "h")
    assert lost_before.step == FUSED
    assert lost_before.words.endswith("“fuse” put it at 6; “rerank” looked at the first 4 only.")


def test_dropped_by_a_grade_against_its_threshold():
    grades = [{"id": id, "grade": grade} for id, grade in (("a", 0.9), ("b", 0.08), ("c", None))]
    judge = span(
        2, "grade", "EVALUATOR", output={"grades": grades, "low": 0.2, "high": 0.8, "decision": "correct"}
    )
    kept = span(3, "keep by grade", "RERANKER", "ac", inputs={"hits": "3 hits"})
    one = fate(route([SPARSE, judge, kept], "ac"), "b")
    assert (one.kind, one.rank, one.was) == ("dropped by grade", None, 2)
    assert (
        one.words
        == "At 2 in “search BM25”; graded 0.08 by “grade”, below 0.20, and “keep by grade” left it out."
    )


def test_all_is_discarded_where_the_grades_are_too_low():
    grades = [{"id": id, "grade": 0.1} for id in "ab"]
    judge = span(
        2, "grade", "EVALUATOR", output={"grades": grades, "low": 0.2, "high": 0.8, "decision": "incorrect"}
    )
    web = span(3, "search the web", "TOOL", ["web/x:0-1"], inputs={"text": "why"})
    for spans, final in (([SPARSE, judge, web], ["web/x:0-1"]), ([SPARSE, judge], [])):
        graded, other = fate(route(spans, final), "a"), fate(route(spans, final), "c")
        assert (graded.kind, graded.step) == ("dropped by grade", judge)
        assert "graded 0.10 by “grade”, below 0.20" in graded.words.replace("Graded", "graded")
        assert other.kind == "dropped by grade"
        assert "its best grade, 0.10, is below 0.20" in other.words


def test_far_from_the_question_is_told_with_cosine_and_floor():
    near = span(2, "drop far", "EVALUATOR", "ac", inputs={"hits": "3 hits", "floor": 0.2,
                "cosines": {"a": 0.5, "b": 0.11, "c": 0.4}})  # fmt: skip
    rest = span(3, "append the rest", "CHAIN", "acbdef", inputs={"first": "2 hits", "rest": "6 hits"})
    one = fate(route([SPARSE, near, rest], "acbdef"), "b", 2)
    assert (one.kind, one.rank, one.step) == ("dropped by grade", 3, near)
    assert "its cosine is 0.11, and 0.20 is needed" in one.words


def test_near_duplicate_names_the_one_it_is_like():
    unique = span(2, "drop near-duplicates", "GUARDRAIL", "acdef", inputs={
        "hits": "6 hits", "dropped": {"b": {"kept": "a", "similarity": 0.875}}})  # fmt: skip
    one = fate(route([SPARSE, unique], "acdef"), "b")
    assert (one.kind, one.rank, one.was, one.step) == ("near-duplicate", None, 2, unique)
    assert "too like a (similarity 0.88)" in one.words or "too like a (similarity 0.87)" in one.words


def test_compressed_out_of_the_prompt_and_of_the_top():
    strips = [{"id": id, "text": "s", "score": 0.1, "kept": id != "b"} for id in "abb"]
    cut = span(2, "keep strips", "EVALUATOR", output=strips)
    told = span(3, "excerpts", "CHAIN", output={"excerpts": {"a": "s"}})
    rest = span(4, "append the rest", "CHAIN", "abcdef", inputs={"first": "1 hits", "rest": "6 hits"})
    wrote = span(5, "write answer", "LLM", inputs={"shown": ["a"]}, output="So [1].")
    result = route([SPARSE, cut, told, rest, wrote], "abcdef", answer="So [1].", citations=("a",))
    one = fate(result, "b")
    assert (one.kind, one.rank, one.step) == ("compressed out", 2, cut)
    assert one.words == "At rank 2, but not in the prompt: “keep strips” kept none of its 2 pieces."
    behind = replace(rest, hits=scored(*"acdebf"))
    lost = fate(route([SPARSE, cut, told, behind], "acdebf"), "b")
    assert (lost.kind, lost.rank, lost.step) == ("compressed out", 5, cut)


def test_in_the_prompt_and_not_used():
    wrote = span(2, "write answer", "LLM", inputs={"shown": ["a", "b"]}, output="So [1].")
    result = route([SPARSE, wrote], "abcdef", answer="So [1].", citations=("a",))
    assert fate(result, "a").words == "At rank 1, in the prompt, and cited."
    assert (fate(result, "b").kind, fate(result, "b").step) == ("not used", wrote)
    assert fate(result, "c").words == "At rank 3; the prompt held 2 passages, and not this one."


@pytest.mark.parametrize(("status", "said"), [
    ("failed", "The route failed: boom."), ("timeout", "The route ran out of time: boom."),
    ("unavailable", "The route could not run: boom."), ("cancelled", "The route was stopped: boom."),
])  # fmt: skip
def test_no_ranking_with_the_reason(status, said):
    broken = span(2, "rerank", "RERANKER", error="boom")
    one = fate(route([SPARSE, broken], "", status=status, error="boom"), "b")
    assert (one.kind, one.rank, one.step) == ("no ranking", None, broken)
    assert one.words == f"{said} Until then it was at 2 in “search BM25”."


def test_a_list_that_was_not_used_and_one_that_was_cut():
    other = span(2, "search vectors", "RETRIEVER", "xyz", inputs={"text": "else"})
    one = fate(route([SPARSE, other], "xyz"), "b")
    assert (one.kind, one.was, one.step) == ("list not used", 2, SPARSE)
    cut = fate(route([SPARSE], "abcd"), "e", 5)
    assert (cut.kind, cut.was) == ("cut off", 5)
    assert cut.words == "At 5 in “search BM25”, but the route returned 4 of 6."


def test_loops_collect_first_and_the_chosen_round_counts():
    first = span(2, "collect", "CHAIN", "ab", inputs={"collected": [], "found": "6 hits"})
    again = span(3, "search BM25", "RETRIEVER", "xyzb", inputs={"text": "then"})
    grown = span(4, "collect", "CHAIN", "abxy", inputs={"collected": "2 hits", "found": "4 hits"})
    fused = span(5, "fuse", "CHAIN", "bxacydzef", inputs={"lists": [1, 3]})
    final = span(6, "append the rest", "CHAIN", "abxycdzef", inputs={"first": "4 hits", "rest": "9 hits"})
    result = route([SPARSE, first, again, grown, fused, final], "abxycdzef")
    one = fate(result, "c")
    assert (one.kind, one.rank, one.step.name) == ("fused away", 5, "fuse")
    assert fate(result, "z").step == fused
    best = span(4, "keep the best round", "CHAIN", "abcdef", inputs={"found": ["6 hits", "4 hits"]})
    kept = route([SPARSE, again, best], "abcdef")
    assert [source.span for source in Flow(kept).sources(best)] == [SPARSE]
    assert fate(kept, "x").kind == "list not used"


def test_lists_that_held_it_anywhere_best_first_and_shared_ones_once():
    run = make_run(mishaps=False)
    id = run.results[0].hits[4].passage.id
    lists = held([Funnel(result) for result in run.results], id)
    assert [one.rank for one in lists] == sorted(one.rank for one in lists)
    assert sum(one.span.name == "search BM25" and one.rank == 5 for one in lists) == 1
    assert all(one.span.hits[one.rank - 1][0] == id for one in lists)


RUNS = [make_run(mishaps=False), make_run(), make_run(hostile=True)]


@given(run=st.sampled_from(RUNS), at=st.integers(0, 59), depth=st.integers(1, 60))
def test_a_fate_agrees_with_the_final_ranking(run, at, depth):
    id = list(run.passages)[at]
    for result in run.results:
        one = Funnel(result).fate(id, depth)
        places = [hit.passage.id for hit in result.hits]
        rank = places.index(id) + 1 if id in places else None
        assert one.rank == (rank if result.status == "ok" else None)
        inside = one.kind in ("found", "not used", "compressed out")
        assert inside == (one.rank is not None and one.rank <= depth)
        assert one.words.endswith(".")
        if one.step is not None:
            assert one.step in result.spans


ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


SHAPES = [
    {"lists": [1, 2]},
    {"lists": [None, 99, True, "x"]},
    {"lists": "8 hits"},
    {"hits": "3 hits", "dropped": []},
    {"dropped": {"a": 1}, "cosines": {"a": "x"}, "floor": None},
    {"first": "2 hits", "rest": "9 hits"},
    {"found": [1]},
]
MAKERS = ["CHAIN", "RERANKER", "EVALUATOR", "GUARDRAIL"]


@given(ids, ids, ids, st.integers(1, 9), st.sampled_from(SHAPES), st.sampled_from(MAKERS))
def test_spans_of_any_shape_give_a_fate(first, second, final, depth, inputs, kind):
    """An imported run may hold anything."""
    spans = [
        span(1, "one", "RETRIEVER", first),
        span(2, "two", "RETRIEVER", second),
        span(3, "last", kind, final, inputs=inputs),
    ]
    funnel = Funnel(route(spans, final))
    for id in "abcdefghz":
        one = funnel.fate(id, depth)
        assert one.rank == (final.index(id) + 1 if id in final else None)
        assert (one.kind == "found") == (one.rank is not None and one.rank <= depth)
        assert one.words
        assert len(funnel.stages(id)) == len(funnel.flow.lists)


def test_fates_of_every_route_that_can_run_agree_with_its_spans(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(Query("What if a fragile box arrived crushed?"), "tiny", tuple(routes())))
    assert sum(result.status == "ok" for result in run.results) >= 15
    for result in (one for one in run.results if one.status == "ok"):
        funnel = Funnel(result)
        final = [hit.passage.id for hit in result.hits]
        assert funnel.flow.last is not None or not final
        for id in run.passages:
            for depth in (1, 2, 5):
                one = funnel.fate(id, depth)
                assert one.rank == (final.index(id) + 1 if id in final else None)
                if one.step is not None and one.was is not None and one.step.hits is not None:
                    ranks = {stage.rank for stage in funnel.stages(id)}
                    assert one.was in ranks or one.was == one.rank
                if one.kind == "never retrieved":
                    assert all(id not in dict(span.hits or ()) for span in result.spans)
