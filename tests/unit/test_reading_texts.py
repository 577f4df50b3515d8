"""What a route's texts found and which came of which, worked out by hand on small routes."""

from dataclasses import replace

import pytest

from core.reading_texts import (
    changed,
    finds,
    found_in,
    imagined,
    outcome,
    searches,
    standing_for,
    written,
)
from core.reading_tree import MOST, tree
from core.relevance import relevant
from core.types import Hit, Passage, Query, RouteResult, Span
from tests.runs import IMAGINED, STANDALONE, VARIANTS, make_run


def span(number, name, kind, inputs, output=None, hits=None, parent=None):
    listed = None if hits is None else tuple((id, 1.0 / n) for n, id in enumerate(hits, 1))
    return Span(number, parent, name, kind, 0, 1, inputs, output, listed)


def bm25(number, text, hits):
    return span(number, "search BM25", "RETRIEVER", {"text": text, "k": 100}, hits=hits)


def route(name, final, *spans):
    hits = tuple(Hit(Passage(id, id, id, id), 1 / n) for n, id in enumerate(final, 1))
    return RouteResult(name, name.title(), "ok", 5, hits=hits, spans=spans)


def run_of(*results):
    return replace(make_run(), query=Query("q"), results=results)


PLAIN = route("plain", "abc", bm25(1, "q", "abc"))
SEVERAL = route(
    "several",
    "ax",
    span(1, "write", "LLM", {"text": "q"}, ["v1", "v2"]),
    bm25(2, "q", "ab"),
    bm25(3, "v1", "bx"),
    span(4, "embed", "EMBEDDING", {"text": "v2"}),
    span(5, "search vectors", "RETRIEVER", {"vector": "2 vector"}, hits="xyb"),
)
RUN = make_run(mishaps=False)


def stored(name):
    return next(result for result in RUN.results if result.route == name)


def found_by_text(result, depth):
    """What each text found, as a set; vectors of several texts left out."""
    found = found_in(searches(result), depth)
    return {text: set(ids) for text, ids in found.items() if isinstance(text, str)}


def test_variants_own_finds():
    found = found_by_text(stored("rag_fusion"), 5)
    lists = [{id for id, _ in one.hits[:5]} for one in stored("rag_fusion").spans if one.kind == "RETRIEVER"]
    assert found == {VARIANTS[0]: lists[0] | lists[1]}


def test_what_only_one_text_found_by_hand():
    assert [(f.text, f.found, f.only, f.kept) for f in finds(run_of(SEVERAL), SEVERAL, 10)] == [
        ("q", ("a", "b"), ("a",), ("a",)),
        ("v1", ("b", "x"), (), ()),
        ("v2", ("x", "y", "b"), ("y",), ()),
    ]
    # in the top 1 each list has one passage, and all differ but the last two ranks
    assert [(f.text, f.only) for f in finds(run_of(SEVERAL), SEVERAL, 1)] == [
        ("q", ("a",)),
        ("v1", ("b",)),
        ("v2", ("x",)),
    ]


def test_a_text_searched_twice_has_its_passages_by_best_rank():
    two = route("r", "", bm25(1, "q", "abc"), bm25(2, "q", "ca"))
    assert finds(run_of(two), two, 10)[0].found == ("a", "c", "b")


def test_a_route_without_the_question_is_compared_with_the_same_search_of_others():
    words = route("w", "z", span(1, "rewrite", "LLM", {"text": "q"}, "other"), bm25(2, "other", "za"))
    first, second = finds(run_of(PLAIN, words), words, 2)
    assert (first.text, first.elsewhere, first.found, first.only) == ("q", True, ("a", "b"), ("b",))
    assert (second.text, second.elsewhere, second.only, second.kept) == ("other", False, ("z",), ("z",))
    assert [one.text for one in finds(run_of(words), words, 2)] == ["other"]


def test_a_mean_has_finds_of_its_own():
    mean = route(
        "m", "xa", span(1, "mean", "EMBEDDING", {"texts": ["one"], "question": "q"}),
        span(2, "search vectors", "RETRIEVER", {"vector": "v"}, hits="ax"),
    )  # fmt: skip
    dense = route(
        "d", "ab", span(1, "embed", "EMBEDDING", {"text": "q"}),
        span(2, "search vectors", "RETRIEVER", {"vector": "v"}, hits="ab"),
    )  # fmt: skip
    found = finds(run_of(dense, mean), mean, 10)
    assert [(one.text, one.mean, one.only, one.kept) for one in found] == [
        ("q", (), ("b",), ()), ("", ("one", "q"), ("x",), ("x",)),
    ]  # fmt: skip


def test_a_mean_is_no_texts_search_and_a_stale_vector_none():
    mean = {"texts": ["one", "two"], "question": "q"}
    spans = (
        span(1, "embed", "EMBEDDING", {"text": "stale"}),
        span(2, "mean", "EMBEDDING", mean),
        span(3, "search vectors", "RETRIEVER", {"vector": "v"}, hits="ab"),
        span(4, "look up", "RETRIEVER", {"words": "w"}, hits="c"),
        span(5, "other", "RETRIEVER", {}, hits="d"),
    )
    found = searches(route("r", "", *spans))
    assert [(one.text, one.mean) for one in found] == [(None, ("one", "two", "q")), ("w", ())]
    assert found_by_text(route("r", "", *spans), 9) == {"w": {"c"}}


def test_a_vector_mixed_with_what_no_span_tells_is_not_the_questions():
    spans = (
        span(1, "embed", "EMBEDDING", {"text": "q"}),
        span(2, "search vectors", "RETRIEVER", {"vector": "v"}, hits="a"),
        span(3, "mean with turns", "EMBEDDING", {"text": "q", "recalled": "1 hits", "weight": 1.0}),
        span(4, "search vectors", "RETRIEVER", {"vector": "v"}, hits="b"),
    )
    mixed = route("m", "ab", *spans)
    assert [(one.text, one.mean, one.step) for one in searches(mixed)] == [
        ("q", (), ""), (None, ("q",), "mean with turns"),
    ]  # fmt: skip
    assert found_by_text(mixed, 9) == {"q": {"a"}}
    assert [(one.text, one.step, one.only) for one in finds(run_of(mixed), mixed, 9)] == [
        ("q", "", ("a",)), ("", "mean with turns", ("b",)),
    ]  # fmt: skip
    assert changed(run_of(mixed), mixed)


def test_lists_of_samples_belong_to_their_texts():
    each = span(1, "search with each", "RETRIEVER", {"texts": ["one", "two"]}, {"overlap": 0})
    lists = [span(2, "first", "RETRIEVER", {}, hits="ab", parent=1)]
    assert searches(route("r", "", each, *lists)) == []  # one list of two: whose, cannot be told
    lists.append(span(3, "second", "RETRIEVER", {}, hits="c", parent=1))
    assert found_by_text(route("r", "", each, *lists), 9) == {"one": {"a", "b"}, "two": {"c"}}


def test_imagined_passages_are_averaged_or_long():
    assert imagined(stored("hyde")) == [IMAGINED]
    assert imagined(stored("rag_fusion")) == []
    short = route(
        "r", "", span(1, "w", "LLM", {"text": "q"}, ["short"]),
        span(2, "mean", "EMBEDDING", {"texts": ["short"]}),
    )  # fmt: skip
    assert imagined(short) == ["short"]


def test_written_and_changed():
    assert written(RUN, stored("rewrite")) == [STANDALONE]
    assert written(RUN, stored("hyde")) == [IMAGINED]
    assert [r.route for r in RUN.results if changed(RUN, r)] == ["rewrite", "rag_fusion", "hyde"]


@pytest.mark.parametrize(
    ("gold", "expected"),
    [({}, set()), ({"a": 1, "b": 0}, {"a"}), ({"a": 1, "b": 2, "c": 3}, {"b", "c"}), ({"a": 0}, set())],
)
def test_what_counts_as_a_find(gold, expected):
    assert set(relevant(gold)) == expected


def test_the_outcome_by_hand():
    lost = route(
        "lost", "z", span(1, "rewrite", "LLM", {"text": "q"}, "other"), bm25(2, "other", "z"),
    )  # fmt: skip
    silent = route("silent", "a")
    found = outcome(run_of(PLAIN, SEVERAL, lost, silent), {"y": 3, "a": 2, "x": 2, "c": 1}, 10)
    assert (found.changed, found.same, found.silent) == (("Several", "Lost"), ("Plain",), ("Silent",))
    assert found.finds == (("v2", "y"),)  # x came by two texts, a by the question
    assert found.losses == (("Lost", "a"),)  # c is but background


def test_a_loss_is_told_of_the_same_search_alone():
    dense = route(
        "d", "a", span(1, "embed", "EMBEDDING", {"text": "q"}),
        span(2, "search vectors", "RETRIEVER", {"vector": "v"}, hits="a"),
    )  # fmt: skip
    words = route("w", "z", span(1, "rewrite", "LLM", {"text": "q"}, "other"), bm25(2, "other", "z"))
    assert outcome(run_of(dense, words), {"a": 3}, 10).losses == ()


def test_texts_that_stand_for_a_passage():
    keyed = span(1, "search keys", "RETRIEVER", {"text": "q", "found by": {"a": "key", "b": 3}}, hits="ab")
    assert standing_for(route("r", "ab", keyed), "a") == [(keyed, "key")]
    assert standing_for(route("r", "ab", keyed), "b") == []
    assert standing_for(route("r", "", replace(keyed, inputs={"found by": ["a"]})), "a") == []


# The tree.


def shape(branch):
    return {branch.text: [shape(one) for one in branch.branches]}


def test_no_tree_where_one_text_was_searched():
    assert tree(run_of(PLAIN), PLAIN, 10) is None
    assert tree(RUN, stored("hybrid_rrf"), 10) is None


def test_variants_hang_below_the_question():
    root = tree(run_of(SEVERAL), SEVERAL, 10)
    assert shape(root) == {"q": [{"v1": []}, {"v2": []}]}
    assert [(one.step, one.found) for one in root.all()] == [
        ("", ("a", "b")), ("write", ("b", "x")), ("write", ("x", "y", "b")),
    ]  # fmt: skip


def test_parts_in_turn_hang_below_the_answer_they_need():
    made = route(
        "turn", "b",
        span(1, "split", "LLM", {"text": "q", "in_turn": True}, ["Who made it?", "Where was #1 born?"]),
        bm25(2, "q", "a"),
        bm25(3, "Who made it?", "ab"),
        span(4, "look for a short answer", "LLM", {"question": "Who made it?", "hits": "2 hits"}, "Ada"),
        span(5, "fill in", "CHAIN", {"text": "Where was #1 born?", "answers": ["Ada"], "question": "q"},
             "Where was Ada born?"),
        bm25(6, "Where was Ada born?", "c"),
    )  # fmt: skip
    root = tree(run_of(made), made, 10)
    assert shape(root) == {"q": [{"Who made it?": [{"Where was #1 born?": [{"Where was Ada born?": []}]}]}]}
    who = root.branches[0]
    assert (who.answer, who.found, who.branches[0].found) == ("Ada", ("a", "b"), None)


def test_sentences_and_actions_hang_below_the_search_before_them():
    made = route(
        "loop", "a", bm25(1, "q", "a"),
        span(2, "reason", "AGENT", {"question": "q"}, {"sentence": "First.", "decision": "search"}),
        bm25(3, "First.", "b"),
        span(4, "choose", "AGENT", {"question": "q"}, {"input": "then", "decision": "search"}),
        bm25(5, "then", ""),
        span(6, "reason", "AGENT", {"question": "q"}, {"sentence": "So it is.", "decision": "answered"}),
    )  # fmt: skip
    root = tree(run_of(made), made, 10)
    assert shape(root) == {"q": [{"First.": [{"then": []}]}]}
    assert root.branches[0].branches[0].found == ()


def test_a_tree_of_anything_ends():
    odd = [[], {"a": 1}, 3, None, ["q", 5], "q"]
    spans = [
        span(n, "x", kind, {"text": one, "question": one, "texts": one, "note": one, "hits": 1}, one, "a")
        for n, (kind, one) in enumerate(
            ((k, o) for k in ("LLM", "AGENT", "RETRIEVER", "CHAIN") for o in odd), 1
        )
    ]
    made = route("odd", "a", *spans, bm25(99, "r", "a"), *(bm25(100 + n, f"t{n}", "a") for n in range(90)))
    assert sum(1 for _ in tree(run_of(made), made, 10).all()) <= MOST
    outcome(run_of(made), {"a": 3}, 10)


def test_stored_runs_have_trees_only_where_several_texts_were_searched():
    assert [r.route for r in RUN.results if tree(RUN, r, 10)] == []
