"""Fates of passages against hand-made spans, one for each kind, and against the final rankings of routes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.diagnosis import held
from core.analysis.lineage import Lineage, PassedList
from core.analysis.passage_trace import PassageTrace
from core.domain.outputs import (
    NOTHING,
    DraftChoice,
    Duplicate,
    Embedding,
    Excerpts,
    Fusion,
    Grading,
    PassageGrade,
    Rerank,
    Rewrite,
    Search,
    Selection,
    Sentence,
    SentenceFilter,
    Written,
)
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Span
from core.engine.request import Request
from core.routes.registry import routes
from tests.fakes import FakeEngine
from tests.runs import make_run


def scored(*ids):
    return tuple((id, 1 / rank) for rank, id in enumerate(ids, 1))


def ranking(*ids):
    return tuple(Hit(Passage(id, "d", "T", "t"), score) for id, score in scored(*ids))


def span(number, name, kind, ids=None, *, args=None, output=NOTHING, links=(), parent=None, error=None):
    hits = None if ids is None else scored(*ids)
    return Span(number, parent, name, kind, number, 1.0, args or {}, output, hits, tuple(links), error=error)


def route(spans, final, origin=0, **more):
    """A result that returns the first of the last list of `spans`, or of that of the step `origin`; None: the
    route put its ranking together itself.
    """
    last = next((one.id for one in reversed(spans) if one.hits is not None), None)
    made = last if origin == 0 else origin
    return RouteResult(
        "r",
        "R",
        more.pop("status", "ok"),
        5.0,
        hits=ranking(*final),
        spans=tuple(spans),
        origin=Link("hits", made, len(final)) if final else None,
        **more,
    )


def searched(number, ids, text="why", name="search BM25"):
    return span(number, name, "RETRIEVER", ids, args={"text": text, "k": 100}, output=Search((text,)))


def links(*given):
    """Links of several lists: (span, size) or (span, size, start)."""
    return [Link(f"lists[{n}]", *one) for n, one in enumerate(given)]


SPARSE = searched(1, "abcdef")
EMBED = span(2, "embed", "EMBEDDING", args={"text": "why"}, output=Embedding(("why",)))
DENSE = span(3, "search vectors", "RETRIEVER", "fghaij", output=Search(), links=[Link("vector", 2, 384)])
FUSED = span(4, "fuse", "CHAIN", "afbgchidej", output=Fusion("rrf"), links=links((1, 6), (3, 6)))


def fate(result, id, depth=3):
    return PassageTrace(result).fate(id, depth)


def sources(result, step):
    return [(one.span and one.span.id, one.start, one.size) for one in Lineage(result).sources(step)]


def test_found_with_its_rank():
    one = fate(route([SPARSE], "abcdef"), "b")
    assert (one.kind, one.rank, one.step) == ("found", 2, None)
    assert one.words == "At rank 2 of the top 3."


def test_found_too_low_by_every_list():
    one = fate(route([SPARSE], "abcdef"), "e")
    assert (one.kind, one.rank, one.was, one.step) == ("found too low", 5, 5, SPARSE)
    assert one.words == "Found too low: at rank 5 in “search BM25”, its best search rank."


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
    assert one.words == "At rank 2 in “search vectors”, not in 1 of 2 lists; “fuse” put it at rank 4."
    both = fate(route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej"), "a", 1)
    assert both.kind == "found"


def test_the_lists_of_a_step_are_those_its_links_name_in_their_order_and_empty_ones_count():
    empty = searched(5, "")
    fused = span(6, "fuse", "CHAIN", "afgh", output=Fusion("rrf"), links=links((3, 4), (5, 0), (1, 1)))
    result = route([SPARSE, EMBED, DENSE, empty, fused], "afgh")
    assert sources(result, fused) == [(3, 0, 4), (5, 0, 0), (1, 0, 1)]
    assert sources(result, SPARSE) == []
    one = fate(result, "g", 2)
    assert one.words == "At rank 2 in “search vectors”, not in 2 of 3 lists; “fuse” put it at rank 3."


RERANKED = span(5, "rerank", "RERANKER", "gfab", output=Rerank(), links=[Link("hits", 4, 4)])
APPENDED = span(
    6,
    "append the rest",
    "CHAIN",
    "gfabchidej",
    output=Fusion("append"),
    links=[Link("first", 5, 4), Link("rest", 4, 10)],
)
STEPS = [SPARSE, EMBED, DENSE, FUSED, RERANKED, APPENDED]


def test_cut_by_the_reranker_before_and_after():
    one = fate(route(STEPS, "gfabchidej"), "b")
    assert (one.kind, one.rank, one.was, one.step) == ("reranked away", 4, 3, RERANKED)
    assert one.words == "At rank 3 in “fuse”; “rerank” put it at rank 4."


def test_a_step_that_lifts_a_passage_not_far_enough_is_not_blamed():
    lifted = span(2, "rerank", "RERANKER", "abcfde", output=Rerank(), links=[Link("hits", 1, 6)])
    one = fate(route([SPARSE, lifted], "abcfde"), "f")
    assert (one.kind, one.rank, one.was, one.step) == ("found too low", 4, 6, SPARSE)
    assert one.words == "Found too low: at rank 6 in “search BM25”, its best search rank; it ends at rank 4."


def test_outside_the_part_that_the_route_gave_the_reranker():
    one = fate(route(STEPS, "gfabchidej"), "e")
    assert (one.kind, one.rank, one.was, one.step) == ("cut by the route", 9, 9, RERANKED)
    assert (
        one.words
        == "At rank 9 in “fuse”, and the route passed only the first 4 to “rerank”: it ends at rank 9."
    )
    lost_before = fate(route(STEPS, "gfabchidej"), "h")
    assert lost_before.step == FUSED
    assert lost_before.words.endswith(
        "“fuse” put it at rank 6; the route passed only the first 4 to “rerank”."
    )


def test_outside_the_candidates_that_a_reranker_looks_at_of_what_it_was_given():
    looked = span(
        5, "match tokens", "RERANKER", "gfab", args={"candidates": 4}, output=Rerank(), links=links((4, 10))
    )
    appended = replace(APPENDED, links=(Link("first", 5, 4), Link("rest", 4, 10)))
    one = fate(route([SPARSE, EMBED, DENSE, FUSED, looked, appended], "gfabchidej"), "e")
    assert (one.kind, one.rank, one.was, one.step) == ("reranked away", 9, 9, looked)
    assert one.words == "At rank 9 in “fuse”, and “match tokens” scored only the first 4: it ends at rank 9."
    gone = fate(route([SPARSE, EMBED, DENSE, FUSED, looked], "gfab"), "c", 5)
    assert (gone.kind, gone.was) == ("reranked away", 5)
    assert gone.words == "At rank 5 in “fuse”; “match tokens” scored only the first 4."


def test_a_passage_below_the_part_that_a_step_was_given_is_cut_by_the_route():
    lists = links((1, 4), (3, 2))
    fused = span(4, "fuse", "CHAIN", "afbgcd", output=Fusion("rrf"), links=lists)
    result = route([SPARSE, EMBED, DENSE, fused], "afbgcd")
    assert sources(result, fused) == [(1, 0, 4), (3, 0, 2)]
    one = fate(result, "e")
    assert (one.kind, one.rank, one.was, one.step) == ("cut by the route", None, 5, fused)
    assert one.words == "At rank 5 in “search BM25”, but the route passed only the first 4 to “fuse”."
    both = fate(result, "h", 10)
    assert (both.kind, both.was) == ("cut by the route", 3)
    later = replace(fused, links=tuple(links((1, 2, 4))), hits=scored(*"ef"))
    rest = route([SPARSE, later], "ef")
    assert sources(rest, later) == [(1, 4, 2)]
    assert (
        fate(rest, "a").words
        == "At rank 1 in “search BM25”, but the route passed only ranks 5 to 6 to “fuse”."
    )
    assert fate(rest, "f").kind == "found"


def test_a_passage_that_another_list_still_brings_is_lost_where_its_better_place_was_cut():
    fused = span(4, "fuse", "CHAIN", "abfgde", output=Fusion("rrf"), links=links((1, 2), (3, 6)))
    dense = replace(DENSE, hits=scored(*"fgaedc"))
    one = fate(route([SPARSE, EMBED, dense, fused], "abfgde"), "d", 4)
    assert (one.kind, one.rank, one.was, one.step) == ("cut by the route", 5, 4, fused)


def test_what_follows_a_head_that_was_ordered_anew_is_not_cut():
    """A head and its tail are put together again: what the head's step moved, that step moved."""
    head = span(2, "order", "RERANKER", "cab", output=Rerank(), links=[Link("hits", 1, 3)])
    whole = span(
        3,
        "append the rest",
        "CHAIN",
        "cabdef",
        output=Fusion("append"),
        links=[Link("first", 2, 3), Link("rest", 1, 3, 3)],
    )
    result = route([SPARSE, head, whole], "cabdef")
    assert sources(result, whole) == [(2, 0, 3), (1, 3, 3)]
    one = fate(result, "b", 2)
    assert (one.kind, one.rank, one.was, one.step) == ("reranked away", 3, 2, head)


# What the route put together itself.


def test_a_list_of_the_routes_own_making_is_said_and_nothing_is_guessed():
    own = span(4, "rerank", "RERANKER", "fae", output=Rerank(), links=[Link("hits", None, 3)])
    result = route([SPARSE, EMBED, DENSE, own], "fae")
    assert Lineage(result).sources(own) == (PassedList(None, 3),)
    one = fate(result, "b")
    assert (one.kind, one.rank, one.was, one.step) == ("not recorded", None, 2, own)
    assert one.words == (
        "At rank 2 in “search BM25”. The route's own code made the list for “rerank”, so its trace cannot "
        "show where the passage was lost."
    )
    assert fate(result, "f").kind == "found"
    assert fate(result, "z").kind == "never retrieved"
    assert [stage.used for stage in PassageTrace(result).stages("b")] == [None, None, True]


def test_a_ranking_of_the_routes_own_making_is_said():
    result = route([SPARSE, EMBED, DENSE], "gb", origin=None)
    lost, low = fate(result, "c"), fate(result, "b", 1)
    assert (lost.kind, lost.rank, lost.was, lost.step) == ("not recorded", None, 3, None)
    assert lost.words == (
        "At rank 3 in “search BM25”. The route's own code made its final list, so its trace cannot show "
        "where the passage was lost."
    )
    assert (low.kind, low.rank) == ("not recorded", 2)
    assert low.words.endswith("where the passage was lost; it ends at rank 2.")
    unsearched = route([], "gb", origin=None)
    assert fate(unsearched, "b", 1).kind == "not recorded"
    assert fate(unsearched, "c").kind == "not recorded"


def test_what_is_sure_is_said_beside_a_list_of_the_routes_own_making():
    fused = span(4, "fuse", "CHAIN", "xyzfgha", output=Fusion("rrf"), links=links((None, 5), (3, 4)))
    result = route([SPARSE, EMBED, DENSE, fused], "xyzfgha")
    sure = fate(result, "g")
    assert (sure.kind, sure.was, sure.step) == ("fused away", 2, fused)
    assert sure.words == (
        "At rank 2 in “search vectors”; 1 of 2 lists made by the route's own code; “fuse” put it at rank 5."
    )
    assert fate(result, "a").kind == "not recorded"


def test_behind_a_list_of_the_routes_own_making_the_rest_keeps_its_order():
    own = [Link("first", None, 2), Link("rest", 1, 6)]
    put = span(2, "append the rest", "CHAIN", "xyabcdef", output=Fusion("append"), links=own)
    result = route([SPARSE, put], "xyabcdef")
    assert (fate(result, "b").kind, fate(result, "b").was) == ("put behind", 2)
    assert fate(result, "d").kind == "found too low", "it cannot have been in the first two places"


def graded(number, grades, decision="correct", given=(1, 6)):
    found = tuple(PassageGrade(id, grade, "scored") for id, grade in grades)
    output = Grading(found, 0.2, 0.8, decision, "", ("correct", "incorrect"))
    return span(number, "grade", "EVALUATOR", output=output, links=[Link("hits", *given)])


def test_dropped_by_a_grade_against_its_threshold():
    judge = graded(2, (("a", 0.9), ("b", 0.08), ("c", None)), given=(1, 3))
    kept = span(3, "keep by grade", "RERANKER", "ac", output=Rerank(), links=[Link("hits", 1, 3)])
    one = fate(route([SPARSE, judge, kept], "ac"), "b")
    assert (one.kind, one.rank, one.was) == ("dropped by grade", None, 2)
    assert (
        one.words
        == "At rank 2 in “search BM25”; graded 0.08 by “grade”, below 0.20, and “keep by grade” dropped it."
    )


def test_all_is_discarded_where_the_grades_are_too_low():
    judge = graded(2, (("a", 0.1), ("b", 0.1)), "incorrect", (1, 2))
    web = span(3, "search the web", "TOOL", ["web/x:0-1"], args={"text": "why"}, output=Search(("why",)))
    for spans, final in (([SPARSE, judge, web], ["web/x:0-1"]), ([SPARSE, judge], [])):
        lost, other = fate(route(spans, final), "a"), fate(route(spans, final), "c")
        assert (lost.kind, lost.step) == ("dropped by grade", judge)
        assert "graded 0.10 by “grade”, below 0.20" in lost.words.replace("Graded", "graded")
        assert other.kind == "dropped by grade"
        assert "its best grade, 0.10, is below 0.20" in other.words
    kept = fate(route([SPARSE, judge], "abcd"), "e")
    assert kept.kind == "found too low", "the ranking was made from the list that was graded"


def test_far_from_the_question_is_told_with_cosine_and_floor():
    near = span(
        2,
        "drop far",
        "EVALUATOR",
        "ac",
        links=[Link("hits", 1, 3)],
        output=Selection("floor", cosines={"a": 0.5, "b": 0.11, "c": 0.4}, floor=0.2),
    )
    rest = span(
        3,
        "append the rest",
        "CHAIN",
        "acbdef",
        output=Fusion("append"),
        links=[Link("first", 2, 2), Link("rest", 1, 6)],
    )
    one = fate(route([SPARSE, near, rest], "acbdef"), "b", 2)
    assert (one.kind, one.rank, one.step) == ("dropped by grade", 3, near)
    assert "cosine 0.11, below 0.20" in one.words


def test_near_duplicate_names_the_one_it_is_like():
    unique = span(
        2,
        "drop near-duplicates",
        "GUARDRAIL",
        "acdef",
        links=[Link("hits", 1, 6)],
        output=Selection("duplicates", dropped={"b": Duplicate("a", 0.75)}),
    )
    one = fate(route([SPARSE, unique], "acdef"), "b")
    assert (one.kind, one.rank, one.was, one.step) == ("near-duplicate", None, 2, unique)
    assert "too like a (similarity 0.75)" in one.words


def test_compressed_out_of_the_prompt_and_of_the_top():
    pieces = tuple(Sentence(id, "s", 0.1, id != "b") for id in "abb")
    cut = span(2, "keep strips", "EVALUATOR", output=SentenceFilter(pieces, 0.2), links=[Link("hits", 1, 2)])
    made = span(3, "excerpts", "CHAIN", output=Excerpts({"a": "s"}))
    rest = span(
        4,
        "append the rest",
        "CHAIN",
        "abcdef",
        output=Fusion("append"),
        links=[Link("first", None, 1), Link("rest", 1, 6)],
    )
    wrote = span(5, "write answer", "LLM", output=Written("So [1].", ("a",), shown=("a",)))
    answered = {"answer": "So [1].", "citations": ("a",), "answer_span": 5}
    result = route([SPARSE, cut, made, rest, wrote], "abcdef", **answered)
    one = fate(result, "b")
    assert (one.kind, one.rank, one.step) == ("compressed out", 2, cut)
    assert one.words == "At rank 2, but not in the prompt: “keep strips” removed all 2 of its sentences."
    behind = replace(rest, hits=scored(*"acdebf"))
    lost = fate(route([SPARSE, cut, made, behind], "acdebf"), "b")
    assert (lost.kind, lost.rank, lost.step) == ("compressed out", 5, cut)


def test_in_the_prompt_and_not_used():
    wrote = span(2, "write answer", "LLM", output=Written("So [1].", ("a",), shown=("a", "b")))
    result = route([SPARSE, wrote], "abcdef", answer="So [1].", citations=("a",), answer_span=2)
    assert fate(result, "a").words == "At rank 1, in the prompt, and cited."
    assert (fate(result, "b").kind, fate(result, "b").step) == ("not used", wrote)
    assert fate(result, "c").words == "At rank 3, but not in the prompt, which held 2 passages."


def test_the_prompt_is_that_of_the_draft_that_became_the_answer():
    drafts = [
        span(2, "write answer", "LLM", output=Written("So [1].", ("a",), shown=("a",))),
        span(3, "refine the answer", "LLM", output=Written("So [2].", ("b",), shown=("a", "b"))),
    ]
    choice = DraftChoice(1, 2, "the first draft", "no gain", "")
    kept = span(
        4, "keep a draft", "CHAIN", output=choice, links=[Link("drafts[0]", 2, 1), Link("drafts[1]", 3, 1)]
    )
    result = route([SPARSE, *drafts, kept], "abcdef", answer="So [1].", citations=("a",), answer_span=4)
    assert fate(result, "b").words == "At rank 2, but not in the prompt, which held 1 passage."
    own = replace(result, answer_span=None)
    assert fate(own, "b").words == "At rank 2 of the top 3."


def test_all_was_in_the_prompt_and_only_what_is_cited_is_listed():
    whole = span(1, "take the whole corpus", "CHAIN", "abcdef", output=Search())
    wrote = span(2, "write answer", "LLM", output=Written("So [2].", ("b",), shown=tuple("abcdef")))
    cited = span(3, "list the cited", "CHAIN", "b", output=Selection("named"), links=[Link("hits", 1, 6)])
    one = fate(route([whole, wrote, cited], "b", answer="So [2].", citations=("b",), answer_span=2), "a")
    assert (one.kind, one.rank, one.step) == ("not used", None, wrote)
    assert one.words == "It was in the prompt, and the answer does not cite it."


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("failed", "The route failed: boom."),
        ("timeout", "The route ran out of time: boom."),
        ("unavailable", "The route could not run: boom."),
        ("cancelled", "The route was stopped: boom."),
    ],
)
def test_no_ranking_with_the_reason(status, said):
    broken = span(2, "rerank", "RERANKER", error="boom")
    one = fate(route([SPARSE, broken], "", status=status, error="boom"), "b")
    assert (one.kind, one.rank, one.step) == ("no ranking", None, broken)
    assert one.words == f"{said} Until then, the passage was at rank 2 in “search BM25”."


def test_a_list_that_was_not_used_and_one_that_was_cut():
    other = searched(2, "xyz", "else", "search vectors")
    one = fate(route([SPARSE, other], "xyz"), "b")
    assert (one.kind, one.was, one.step) == ("list not used", 2, SPARSE)
    cut = fate(route([SPARSE], "abcd"), "e", 5)
    assert (cut.kind, cut.was, cut.step) == ("cut by the route", 5, None)
    assert cut.words == "At rank 5 in “search BM25”, but the route returned only the first 4 of 6."
    assert fate(route([SPARSE], "abcd"), "e").kind == "found too low", "it would not have been in the top 3"


def collected(number, ids, before, found):
    return span(
        number,
        "collect",
        "CHAIN",
        ids,
        output=Fusion("collect"),
        links=[Link("collected", *before), Link("found", *found)],
    )


def test_loops_collect_first_and_the_chosen_round_counts():
    first = collected(2, "ab", (None, 0), (1, 6))
    again = searched(3, "xyzb", "then")
    grown = collected(4, "abxy", (2, 2), (3, 4))
    fused = span(5, "fuse", "CHAIN", "bxacydzef", output=Fusion("rrf"), links=links((1, 6), (3, 4)))
    final = span(
        6,
        "append the rest",
        "CHAIN",
        "abxycdzef",
        output=Fusion("append"),
        links=[Link("first", 4, 4), Link("rest", 5, 9)],
    )
    result = route([SPARSE, first, again, grown, fused, final], "abxycdzef")
    one = fate(result, "c")
    assert (one.kind, one.rank, one.step.name) == ("fused away", 5, "fuse")
    assert fate(result, "z").step == fused
    best = span(
        4,
        "keep the best round",
        "CHAIN",
        "abcdef",
        output=Selection("round", at=0),
        links=[Link("found[0]", 1, 6), Link("found[1]", 3, 4)],
    )
    kept = route([SPARSE, again, best], "abcdef")
    assert sources(kept, best) == [(1, 0, 6)]
    assert fate(kept, "x").kind == "list not used"
    second = replace(best, output=Selection("round", at=1), hits=scored(*"xyzb"))
    assert sources(route([SPARSE, again, second], "xyzb"), second) == [(3, 0, 4)]


def test_lists_that_a_step_had_by_way_of_others_that_made_none():
    wrote = span(2, "write segments", "LLM", links=[Link("hits", 1, 3), Link("vector", None, 384)])
    tree = span(3, "keep the best paths", "EVALUATOR", links=[Link("tree", None, 1), Link("grown[0]", 2, 1)])
    ordered = span(4, "order by segments", "RERANKER", "ba", output=Rerank(), links=[Link("tree", 3, 1)])
    result = route([SPARSE, wrote, tree, ordered], "ba")
    assert sources(result, ordered) == [(1, 0, 3)]
    assert fate(result, "c").kind == "dropped"
    assert fate(result, "e", 5).kind == "cut by the route"


def test_a_link_that_no_step_can_have_is_taken_for_the_routes_own_making():
    for wrong in (2, 3, 99):
        odd = span(2, "rerank", "RERANKER", "ab", output=Rerank(), links=[Link("hits", wrong, 2)])
        result = route([SPARSE, odd, searched(3, "cd")], "ab", origin=2)
        assert Lineage(result).sources(odd) == (PassedList(None, 2),)


def test_of_a_passage_that_a_list_repeats_each_place_counts():
    twice = span(1, "search", "TOOL", "abab", output=Search(("why",)))
    late = span(2, "rerank", "RERANKER", "ba", output=Rerank(), links=[Link("hits", 1, 2, 2)])
    result = route([twice, late], "ba")
    (source,) = Lineage(result).sources(late)
    assert Lineage(result).passed(source) == {"a": 3, "b": 4}
    assert Lineage(result).places(twice) == {"a": 1, "b": 2}


SEARCHED = [
    (Embedding(("why",)), "“why”"),
    (Embedding(("one", "two")), "the mean of 2 texts"),
    (Embedding(("one",), "why"), "the mean of 1 text and the question"),
    (Embedding(("why",), recalled=("memory/s/1",)), "“why” and recalled turns"),
    (NOTHING, "a vector made by the route's own code"),
]


@pytest.mark.parametrize(("made", "words"), SEARCHED)
def test_what_a_search_searched_with_is_what_its_vector_was_made_of(made, words):
    vector = span(1, "make", "EMBEDDING", output=made)
    other = span(2, "embed", "EMBEDDING", output=Embedding(("embedded last",)))
    linked = span(3, "search vectors", "RETRIEVER", "a", output=Search(), links=[Link("vector", 1, 384)])
    tokens = span(4, "search tokens", "RETRIEVER", "b", output=Search(), links=[Link("asked", 1, 1)])
    funnel = PassageTrace(route([vector, other, linked, tokens], "a"))
    assert (funnel.asked(linked), funnel.asked(tokens)) == (words, words)
    own = replace(linked, links=(Link("vector", None, 384),))
    assert PassageTrace(route([own], "a")).asked(own) == "a vector made by the route's own code"


def test_lists_that_held_it_anywhere_best_first_and_shared_ones_once():
    run = make_run(mishaps=False)
    id = run.results[0].hits[4].passage.id
    lists = held([PassageTrace(result) for result in run.results], id)
    assert [one.rank for one in lists] == sorted(one.rank for one in lists)
    assert sum(one.span.name == "search BM25" and one.rank == 5 for one in lists) == 1
    assert all(one.span.hits[one.rank - 1][0] == id for one in lists)


RUNS = [make_run(mishaps=False), make_run(), make_run(hostile=True)]


@given(run=st.sampled_from(RUNS), at=st.integers(0, 59), depth=st.integers(1, 60))
def test_a_fate_agrees_with_the_final_ranking(run, at, depth):
    id = list(run.passages)[at]
    for result in run.results:
        one = PassageTrace(result).fate(id, depth)
        places = [hit.passage.id for hit in result.hits]
        rank = places.index(id) + 1 if id in places else None
        assert one.rank == (rank if result.status == "ok" else None)
        inside = one.kind in ("found", "not used", "compressed out")
        assert inside == (one.rank is not None and one.rank <= depth)
        assert one.words.endswith(".")
        if one.step is not None:
            assert one.step in result.spans


ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


places = st.tuples(st.sampled_from([None, 1, 2, 3, 99]), st.integers(0, 9), st.integers(0, 4))
OUTPUTS = [
    NOTHING,
    Fusion("rrf"),
    Fusion("append"),
    Rerank(),
    Search(),
    Selection("round", at=1),
    Selection("duplicates", dropped={"a": Duplicate("b", 1.0)}),
    Rewrite("a", (), "parts"),
]
MAKERS = ["CHAIN", "RERANKER", "EVALUATOR", "GUARDRAIL"]
args = st.sampled_from(["lists[0]", "lists[1]", "hits", "first", "rest", "found[1]", "collected", "x"])


@given(
    ids,
    ids,
    ids,
    st.integers(1, 9),
    st.lists(st.tuples(args, places), max_size=4),
    st.sampled_from(OUTPUTS),
    st.sampled_from(MAKERS),
    st.sampled_from([0, 1, None, 99]),
)
def test_spans_of_any_shape_give_a_fate(first, second, final, depth, given_lists, output, kind, origin):
    """An imported run may hold anything."""
    named = [Link(arg, *place) for arg, place in given_lists]
    spans = [
        span(1, "one", "RETRIEVER", first),
        span(2, "two", "RETRIEVER", second),
        span(3, "last", kind, final, output=output, links=named, args={"candidates": 2}),
    ]
    funnel = PassageTrace(route(spans, final, origin))
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
        funnel = PassageTrace(result)
        final = [hit.passage.id for hit in result.hits]
        assert funnel.flow.sources(None) or not final
        assert not funnel.flow.unknown
        for id in run.passages:
            for depth in (1, 2, 5):
                one = funnel.fate(id, depth)
                assert one.rank == (final.index(id) + 1 if id in final else None)
                if one.step is not None and one.was is not None and one.step.hits is not None:
                    ranks = {stage.rank for stage in funnel.stages(id)}
                    assert one.was in ranks or one.was == one.rank
                if one.kind == "never retrieved":
                    assert all(id not in dict(span.hits or ()) for span in result.spans)
