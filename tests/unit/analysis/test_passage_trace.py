"""Fates of passages against hand-made spans, one for each kind, and against the final rankings of routes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.diagnosis import held
from core.analysis.lineage import Lineage
from core.analysis.passage_trace import PassageTrace
from core.domain.outputs import (
    NOTHING,
    Decision,
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
from core.domain.types import Hit, Link, Passage, RouteResult, Span
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
    end = Link("hits", last if origin == 0 else origin, len(final)) if final else None
    status, hits = more.pop("status", "ok"), ranking(*final)
    return RouteResult("r", "R", status, 5.0, hits=hits, spans=tuple(spans), origin=end, **more)


def searched(number, ids, text="why", name="search BM25"):
    return span(number, name, "RETRIEVER", ids, args={"text": text, "k": 100}, output=Search((text,)))


def links(*given):
    """Links of several lists: (span, size) or (span, size, start)."""
    return [Link(f"lists[{n}]", *one) for n, one in enumerate(given)]


SPARSE = searched(1, "abcdef")
EMBED = span(2, "embed", "EMBEDDING", args={"text": "why"}, output=Embedding(("why",)))
DENSE = span(3, "search vectors", "RETRIEVER", "fghaij", output=Search(), links=[Link("vector", 2, 384)])


def fuse(number, ids, *lists):
    return span(number, "fuse", "CHAIN", ids, output=Fusion("rrf"), links=links(*lists))


def rerank(number, ids, *given, name="rerank", **args):
    return span(number, name, "RERANKER", ids, args=args, output=Rerank(), links=[Link("hits", *given)])


def append(number, ids, first, rest):
    given = [Link("first", *first), Link("rest", *rest)]
    return span(number, "append the rest", "CHAIN", ids, output=Fusion("append"), links=given)


def collect(number, ids, before, found):
    given = [Link("collected", *before), Link("found", *found)]
    return span(number, "collect", "CHAIN", ids, output=Fusion("collect"), links=given)


def wrote(number, cited, shown):
    return span(number, "write answer", "LLM", output=Written("So [1].", cited, shown=shown))


def graded(number, grades, decision="correct", given=(1, 6)):
    found = tuple(PassageGrade(id, grade, "scored") for id, grade in grades)
    output = Grading(found, 0.2, 0.8, decision, "", ("correct", "incorrect"))
    return span(number, "grade", "EVALUATOR", output=output, links=[Link("hits", *given)])


FUSED = fuse(4, "afbgchidej", (1, 6), (3, 6))
RERANKED = rerank(5, "gfab", 4, 4)
SPARSE_ALONE = route([SPARSE], "abcdef")
HYBRID = route([SPARSE, EMBED, DENSE, FUSED], "afbgchidej")
STEPS = route([SPARSE, EMBED, DENSE, FUSED, RERANKED, append(6, "gfabchidej", (5, 4), (4, 10))], "gfabchidej")
PARTS = route([SPARSE, EMBED, DENSE, fuse(4, "afbgcd", (1, 4), (3, 2))], "afbgcd")
TAIL = route([SPARSE, fuse(4, "ef", (1, 2, 4))], "ef")
OWN_LIST = route([SPARSE, EMBED, DENSE, rerank(4, "fae", None, 3)], "fae")
OWN_RANKING = route([SPARSE, EMBED, DENSE], "gb", origin=None)
OWN_OF_TWO = route([SPARSE, EMBED, DENSE, fuse(4, "xyzfgha", (None, 5), (3, 4))], "xyzfgha")
OWN_FIRST = route([SPARSE, append(2, "xyabcdef", (None, 2), (1, 6))], "xyabcdef")
JUDGED = graded(2, (("a", 0.1), ("b", 0.1)), "incorrect", (1, 2))
PIECES = tuple(Sentence(id, "s", 0.1, id != "b") for id in "abb")
CUT = [
    SPARSE,
    span(2, "keep strips", "EVALUATOR", output=SentenceFilter(PIECES, 0.2), links=[Link("hits", 1, 2)]),
    span(3, "excerpts", "CHAIN", output=Excerpts({"a": "s"})),
]
ANSWERED = {"answer": "So [1].", "citations": ("a",)}
CITED = route([SPARSE, wrote(2, ("a",), ("a", "b"))], "abcdef", **ANSWERED, answer_span=2)
CHOICE = DraftChoice(1, 2, "the first draft", "no gain", "")
DRAFTS = [
    SPARSE,
    wrote(2, ("a",), ("a",)),
    wrote(3, ("b",), ("a", "b")),
    span(4, "keep a draft", "CHAIN", output=CHOICE, links=[Link("drafts[0]", 2, 1), Link("drafts[1]", 3, 1)]),
]
UNUSED = route(
    [*CUT, append(4, "abcdef", (None, 1), (1, 6)), wrote(5, ("a",), ("a",))],
    "abcdef",
    **ANSWERED,
    answer_span=5,
)
WHOLE = [
    span(1, "take the whole corpus", "CHAIN", "abcdef", output=Search()),
    wrote(2, ("b",), tuple("abcdef")),
    span(3, "list the cited", "CHAIN", "b", output=Selection("named"), links=[Link("hits", 1, 6)]),
]
LOOP = route(
    [
        SPARSE,
        collect(2, "ab", (None, 0), (1, 6)),
        searched(3, "xyzb", "then"),
        collect(4, "abxy", (2, 2), (3, 4)),
        fuse(5, "bxacydzef", (1, 6), (3, 4)),
        append(6, "abxycdzef", (4, 4), (5, 9)),
    ],
    "abxycdzef",
)
FOUND = [Link("found[0]", 1, 6), Link("found[1]", 3, 4)]
BEST = span(4, "keep the best round", "CHAIN", "abcdef", output=Selection("round", at=0), links=FOUND)
ROUNDS = route([SPARSE, searched(3, "xyzb"), BEST], "abcdef")
FLOOR = Selection("floor", cosines={"a": 0.5, "b": 0.11, "c": 0.4}, floor=0.2)
NEAR = span(2, "drop far", "EVALUATOR", "ac", links=[Link("hits", 1, 3)], output=FLOOR)
TWINS = Selection("duplicates", dropped={"b": Duplicate("a", 0.75)})
UNIQUE = span(2, "drop near-duplicates", "GUARDRAIL", "acdef", links=[Link("hits", 1, 6)], output=TWINS)
KEPT = span(3, "keep by grade", "RERANKER", "ac", output=Rerank(), links=[Link("hits", 1, 3)])
GRADED = graded(2, (("a", 0.9), ("b", 0.08), ("c", None)), given=(1, 3))
WEB = span(3, "web", "TOOL", ["web/x:0-1"], output=Search(("why",)))
HEAD = route([SPARSE, rerank(2, "cab", 1, 3), append(3, "cabdef", (2, 3), (1, 3, 3))], "cabdef")
OTHER_DENSE = replace(DENSE, hits=scored(*"fgaedc"))
BETTER_CUT = route([SPARSE, EMBED, OTHER_DENSE, fuse(4, "abfgde", (1, 2), (3, 6))], "abfgde")
LOOKED_AT = [*HYBRID.spans, rerank(5, "gfab", 4, 10, name="match tokens", candidates=4)]
LOOKED_REST = route([*LOOKED_AT, append(6, "gfabchidej", (5, 4), (4, 10))], "gfabchidej")
TREE = [
    SPARSE,
    span(2, "write segments", "LLM", links=[Link("hits", 1, 3), Link("vector", None, 384)]),
    span(3, "keep the best paths", "EVALUATOR", links=[Link("tree", None, 1), Link("grown[0]", 2, 1)]),
    span(4, "order by segments", "RERANKER", "ba", output=Rerank(), links=[Link("tree", 3, 1)]),
]
READ = span(2, "read a range", "RETRIEVER", "ab", output=Search(model="read"))
ENDED = span(3, "decide", "AGENT", output=Decision("answer", ("search", "answer"), "enough"))
UNOPENED = route([SPARSE, READ, ENDED], "ab")
# A route; a passage @ how many of the ranking count, its fate: its ranks in the end and before the step, and
# the step's number; words.
FATES = [
    (SPARSE_ALONE, "b@3 found: 2 - -", "At rank 2 of the top 3."),
    (SPARSE_ALONE, "e@3 found too low: 5 5 1", "at rank 5 in “search BM25”, its best search rank."),
    (
        HYBRID,
        "z@3 never retrieved: - - -",
        "Not found by “search BM25” for “why” (6 passages), “search vectors” for “why” (6 passages).",
    ),
    (SPARSE_ALONE, "z@3 never retrieved: - - 1", "Not found by"),
    (SPARSE_ALONE, "memory/s/1@3 never retrieved: - - 1", "Only a search of the conversation"),
    (SPARSE_ALONE, "web/a.md:0-1@3 never retrieved: - - 1", "Only a web search"),
    (
        HYBRID,
        "g@3 fused away: 4 2 4",
        "At rank 2 in “search vectors”, not in 1 of 2 lists; “fuse” put it at rank 4.",
    ),
    (HYBRID, "a@1 found: 1 - -", ""),
    # Reranked: after the step, outside what it was given, and outside what it looked at.
    (STEPS, "b@3 reranked away: 4 3 5", "At rank 3 in “fuse”; “rerank” put it at rank 4."),
    (STEPS, "e@3 cut by the route: 9 9 5", "only the first 4 to “rerank”: it ends at rank 9."),
    (STEPS, "h@3 fused away: 6 3 4", "rank 6; the route passed only the first 4 to “rerank”."),
    # A step that lifts a passage, not far enough, is not blamed.
    (
        route([SPARSE, rerank(2, "abcfde", 1, 6)], "abcfde"),
        "f@3 found too low: 4 6 1",
        "at rank 6 in “search BM25”, its best search rank; it ends at rank 4.",
    ),
    (
        LOOKED_REST,
        "e@3 reranked away: 9 9 5",
        "At rank 9 in “fuse”, and “match tokens” scored only the first 4: it ends at rank 9.",
    ),
    (route(LOOKED_AT, "gfab"), "c@5 reranked away: - 5 5", "scored only the first 4."),
    # A head that was ordered again and its tail are put together: the head's step moved what it moved.
    (HEAD, "b@2 reranked away: 3 2 2", ""),
    # Found by an agent that did not open it, as far as a step ended the reading.
    (
        UNOPENED,
        "c@3 found, not opened: - 3 3",
        "it is not among the 2 passages that were opened; “decide” ended",
    ),
    (UNOPENED, "z@3 never retrieved: - - -", ""),
    (route([SPARSE, READ], "ab"), "c@3 list not used: - 3 1", ""),
    (
        route([searched(n, "abc", f"q{n}") for n in range(1, 7)], "abc"),
        "z@3 never retrieved: - - -",
        "and 2 more",
    ),
    # Cut by the route.
    (PARTS, "e@3 cut by the route: - 5 4", "but the route passed only the first 4 to “fuse”."),
    (PARTS, "h@10 cut by the route: - 3 4", ""),
    (TAIL, "a@3 cut by the route: - 1 4", "but the route passed only ranks 5 to 6 to “fuse”."),
    (TAIL, "f@3 found: 2 - -", ""),
    (route([SPARSE], "abcd"), "e@5 cut by the route: - 5 -", "returned only the first 4 of 6."),
    (route([SPARSE], "abcd"), "e@3 found too low: - 5 1", ""),  # it would not have been in the top 3
    # Another list still brings it: it is lost where its better place was cut.
    (BETTER_CUT, "d@4 cut by the route: 5 4 4", ""),
    (route([SPARSE, searched(2, "xyz", "else")], "xyz"), "b@3 list not used: - 2 1", ""),
    # What the route put together itself: nothing is guessed, and what is sure is said.
    (
        OWN_LIST,
        "b@3 not recorded: - 2 4",
        "The route's own code made the list for “rerank”, so its trace cannot show where",
    ),
    (OWN_LIST, "f@3 found: 1 - -", ""),
    (OWN_LIST, "z@3 never retrieved: - - -", ""),
    (OWN_RANKING, "c@3 not recorded: - 3 -", "The route's own code made its final list, so"),
    (OWN_RANKING, "b@1 not recorded: 2 2 -", "where the passage was lost; it ends at rank 2."),
    (route([], "gb", origin=None), "b@1 not recorded: 2 - -", ""),
    (route([], "gb", origin=None), "c@3 not recorded: - - -", ""),
    (OWN_OF_TWO, "g@3 fused away: 5 2 4", "; 1 of 2 lists made by the route's own code; “fuse” put it"),
    (OWN_OF_TWO, "a@3 not recorded: 7 1 4", ""),
    (OWN_FIRST, "b@3 put behind: 4 2 2", ""),
    (OWN_FIRST, "d@3 found too low: 6 4 1", ""),  # it cannot have been in the first two places
    # Dropped by a grade, a cosine, or as a duplicate.
    (
        route([SPARSE, GRADED, KEPT], "ac"),
        "b@3 dropped by grade: - 2 3",
        "graded 0.08 by “grade”, below 0.20, and “keep by grade” dropped it.",
    ),
    (route([SPARSE, JUDGED], ""), "a@3 dropped by grade: - 1 2", "raded 0.10 by “grade”, below 0.20"),
    (
        route([SPARSE, JUDGED, WEB], ["web/x:0-1"]),
        "c@3 dropped by grade: - 3 2",
        "its best grade, 0.10, is below 0.20",
    ),
    (route([SPARSE, JUDGED], "abcd"), "e@3 found too low: - 5 1", ""),  # it was made of what was graded
    (
        route([SPARSE, NEAR, append(3, "acbdef", (2, 2), (1, 6))], "acbdef"),
        "b@2 dropped by grade: 3 2 2",
        "cosine 0.11, below 0.20",
    ),
    (route([SPARSE, UNIQUE], "acdef"), "b@3 near-duplicate: - 2 2", "too like a (similarity 0.75)"),
    # What became of it in the prompt.
    (
        UNUSED,
        "b@3 compressed out: 2 2 2",
        "At rank 2, but not in the prompt: “keep strips” removed all 2 of its sentences.",
    ),
    (route([*CUT, append(4, "acdebf", (None, 1), (1, 6))], "acdebf"), "b@3 compressed out: 5 2 2", ""),
    (CITED, "a@3 found: 1 - -", "At rank 1, in the prompt, and cited."),
    (CITED, "b@3 not used: 2 2 2", ""),
    (CITED, "c@3 found: 3 - -", "At rank 3, but not in the prompt, which held 2 passages."),
    (
        route(DRAFTS, "abcdef", **ANSWERED, answer_span=4),
        "b@3 found: 2 - -",
        "At rank 2, but not in the prompt, which held 1 passage.",
    ),
    (route(DRAFTS, "abcdef", **ANSWERED), "b@3 found: 2 - -", "At rank 2 of the top 3."),
    (
        route(WHOLE, "b", answer="So [2].", citations=("b",), answer_span=2),
        "a@3 not used: - 1 2",
        "It was in the prompt, and the answer does not cite it.",
    ),
    # Loops collect first, and the chosen round counts.
    (LOOP, "c@3 fused away: 5 3 5", ""),
    (LOOP, "z@3 fused away: 7 3 5", ""),
    (ROUNDS, "x@3 list not used: - 1 3", ""),
    (route(TREE, "ba"), "c@3 dropped: - 3 4", ""),
    (route(TREE, "ba"), "e@5 cut by the route: - 5 4", ""),
]


@pytest.mark.parametrize(("result", "expected", "words"), FATES, ids=[one[1] for one in FATES])
def test_fates_worked_by_hand(result, expected, words):
    id, _, depth = expected.partition(" ")[0].partition("@")
    one = PassageTrace(result).fate(id, int(depth))
    numbers = (one.rank, one.was, one.step and one.step.id)
    assert f"{id}@{depth} {one.kind}: {' '.join(str(n or '-') for n in numbers)}" == expected, one.words
    assert words in one.words


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("failed", "failed"),
        ("timeout", "ran out of time"),
        ("unavailable", "could not run"),
        ("cancelled", "was stopped"),
    ],
)
def test_no_ranking_with_the_reason(status, said):
    broken = span(2, "rerank", "RERANKER", error="boom")
    one = PassageTrace(route([SPARSE, broken], "", status=status, error="boom")).fate("b", 3)
    assert (one.kind, one.rank, one.step) == ("no ranking", None, broken)
    assert one.words == f"The route {said}: boom. Until then, the passage was at rank 2 in “search BM25”."


def sources(result, step):
    spans = {one.id: one for one in result.spans}
    return [(one.span and one.span.id, one.start, one.size) for one in Lineage(result).sources(spans[step])]


WITH_EMPTY = [SPARSE, EMBED, DENSE, searched(5, ""), fuse(6, "afgh", (3, 4), (5, 0), (1, 1))]


@pytest.mark.parametrize(
    ("result", "step", "lists"),
    [
        (route(WITH_EMPTY, "afgh"), 6, [(3, 0, 4), (5, 0, 0), (1, 0, 1)]),
        (route(WITH_EMPTY, "afgh"), 1, []),
        (PARTS, 4, [(1, 0, 4), (3, 0, 2)]),
        (TAIL, 4, [(1, 4, 2)]),
        (OWN_LIST, 4, [(None, 0, 3)]),
        (route(TREE, "ba"), 4, [(1, 0, 3)]),  # by way of steps that made no list
        (ROUNDS, 4, [(1, 0, 6)]),
        *(  # no step can have these: the route made the list itself
            (route([SPARSE, rerank(2, "ab", wrong, 2), searched(3, "cd")], "ab", origin=2), 2, [(None, 0, 2)])
            for wrong in (2, 3, 99)
        ),
    ],
)
def test_the_lists_of_a_step_are_those_its_links_name_in_their_order(result, step, lists):
    assert sources(result, step) == lists


def test_of_a_passage_that_a_list_repeats_each_place_counts():
    twice = span(1, "search", "TOOL", "abab", output=Search(("why",)))
    late = rerank(2, "ba", 1, 2, 2)
    flow = Lineage(route([twice, late], "ba"))
    (source,) = flow.sources(late)
    assert flow.passed(source) == {"a": 3, "b": 4}
    assert flow.places(twice) == {"a": 1, "b": 2}


def test_what_a_search_searched_with_is_what_its_vector_was_made_of():
    own = "a vector made by the route's own code"
    for made, words in (
        (Embedding(("why",)), "“why”"),
        (Embedding(("one", "two")), "the mean of 2 texts"),
        (Embedding(("one",), "why"), "the mean of 1 text and the question"),
        (Embedding(("why",), recalled=("memory/s/1",)), "“why” and recalled turns"),
        (NOTHING, own),
    ):
        vector = span(1, "make", "EMBEDDING", output=made)
        other = span(2, "embed", "EMBEDDING", output=Embedding(("embedded last",)))
        linked = span(3, "search vectors", "RETRIEVER", "a", output=Search(), links=[Link("vector", 1, 384)])
        tokens = span(4, "search tokens", "RETRIEVER", "b", output=Search(), links=[Link("asked", 1, 1)])
        funnel = PassageTrace(route([vector, other, linked, tokens], "a"))
        assert (funnel.asked(linked), funnel.asked(tokens)) == (words, words)
        linked = replace(linked, links=(Link("vector", None, 384),))
        assert PassageTrace(route([linked], "a")).asked(linked) == own


def test_lists_that_held_it_anywhere_best_first_and_shared_ones_once():
    run = make_run(mishaps=False)
    id = run.results[0].hits[4].passage.id
    lists = held([PassageTrace(result) for result in run.results], id)
    assert [one.rank for one in lists] == sorted(one.rank for one in lists)
    assert sum(one.span.name == "search BM25" and one.rank == 5 for one in lists) == 1
    assert all(one.span.hits[one.rank - 1][0] == id for one in lists)


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
