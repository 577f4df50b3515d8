"""What a route's texts found and which came of which, worked out by hand on small routes."""

from dataclasses import replace

from core.analysis.searches import (
    MAX_TREE_TEXTS,
    changed,
    finds,
    found_in,
    imagined,
    outcome,
    searches,
    standing_for,
    tree,
    written,
)
from core.domain.outputs import NOTHING, Decision, Embedding, Rewrite, SampleSearches, Search, ShortAnswer
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Span
from tests.runs import IMAGINED, STANDALONE, make_run


def scored(ids):
    return tuple((id, 1.0 / n) for n, id in enumerate(ids, 1))


def span(number, name, kind, output=NOTHING, hits=None, *, args=None, links=(), note=""):
    listed = None if hits is None else scored(hits)
    notes = {"note": note} if note else {}
    return Span(number, None, name, kind, 0, 1, args or {}, output, listed, tuple(links), attributes=notes)


def bm25(number, text, hits):
    return span(number, "search BM25", "RETRIEVER", Search((text,)), hits, args={"text": text, "k": 100})


def embed(number, *texts, name="embed", **more):
    return span(number, name, "EMBEDDING", Embedding(texts, **more))


def dense(number, vector, hits):
    """A search with the vector that step `vector` made; None: that the route made."""
    return span(number, "search vectors", "RETRIEVER", Search(), hits, links=[Link("vector", vector, 384)])


def wrote(number, before, *texts, role="question", name="rewrite"):
    return span(number, name, "LLM", Rewrite(before, texts, role))


def route(name, final, *spans):
    hits = tuple(Hit(Passage(id, id, id, id), 1 / n) for n, id in enumerate(final, 1))
    return RouteResult(name, name.title(), "ok", 5, hits=hits, spans=spans)


def run_of(*results):
    return replace(make_run(), query=Query("q"), results=results)


PLAIN = route("plain", "abc", bm25(1, "q", "abc"))
SEVERAL = route(
    "several",
    "ax",
    wrote(1, "q", "v1", "v2", role="variants", name="write"),
    bm25(2, "q", "ab"),
    bm25(3, "v1", "bx"),
    embed(4, "v2"),
    dense(5, 4, "xyb"),
)
RUN = make_run(mishaps=False)


def stored(name):
    return next(result for result in RUN.results if result.route == name)


def found_by_text(result, depth):
    """What each text found, as a set; vectors of several texts left out."""
    found = found_in(searches(result), depth)
    return {text: set(ids) for text, ids in found.items() if isinstance(text, str)}


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
    two = route("r", "", bm25(1, "q", "abc"), bm25(2, "q", "ca"))
    assert finds(run_of(two), two, 10)[0].found == ("a", "c", "b")
    words = route("w", "z", wrote(1, "q", "other"), bm25(2, "other", "za"))
    first, second = finds(run_of(PLAIN, words), words, 2)
    assert (first.text, first.elsewhere, first.found, first.only) == ("q", True, ("a", "b"), ("b",))
    assert (second.text, second.elsewhere, second.only, second.kept) == ("other", False, ("z",), ("z",))
    assert [one.text for one in finds(run_of(words), words, 2)] == ["other"]
    mean = route("m", "xa", embed(1, "one", name="mean", question="q"), dense(2, 1, "ax"))
    plain = route("d", "ab", embed(1, "q"), dense(2, 1, "ab"))
    found = finds(run_of(plain, mean), mean, 10)
    assert [(one.text, one.mean, one.only, one.kept) for one in found] == [
        ("q", (), ("b",), ()),
        ("", ("one", "q"), ("x",), ("x",)),
    ]


def test_a_search_has_the_vector_that_its_link_names_whatever_was_embedded_last():
    spans = (
        embed(1, "first"),
        embed(2, "one", "two", name="mean", question="q"),
        dense(3, 2, "ab"),
        span(4, "look up", "RETRIEVER", Search(("w",)), "c", args={"words": "w"}),
        dense(5, 1, "d"),
        span(6, "search tokens", "RETRIEVER", Search(), "e", links=[Link("asked", 1, 1)]),
        dense(7, None, "f"),
        dense(8, 4, "g"),
        span(9, "other", "RETRIEVER", NOTHING, "h"),
    )
    found = searches(route("r", "", *spans))
    assert [(one.text, one.mean, one.step) for one in found] == [
        (None, ("one", "two", "q"), "mean"),
        ("w", (), ""),
        ("first", (), ""),
        ("first", (), ""),
        (None, (), ""),
        (None, (), ""),
    ]
    assert found_by_text(route("r", "", *spans), 9) == {"w": {"c"}, "first": {"d", "e"}}


def test_vectors_of_the_routes_own_making_or_drawn_to_turns_have_finds_of_their_own():
    own = route("o", "ab", embed(1, "q"), dense(2, 1, "a"), dense(3, None, "b"))
    assert [(one.text, one.mean, one.step, one.only) for one in finds(run_of(own), own, 9)] == [
        ("q", (), "", ("a",)),
        ("", (), "", ("b",)),
    ]
    assert changed(run_of(own), own)
    spans = (
        embed(1, "q"),
        dense(2, 1, "a"),
        embed(3, "q", name="mean with turns", recalled=("memory/s/1",)),
        dense(4, 3, "b"),
    )
    mixed = route("m", "ab", *spans)
    assert [(one.text, one.mean, one.step) for one in searches(mixed)] == [
        ("q", (), ""),
        (None, ("q",), "mean with turns"),
    ]
    assert found_by_text(mixed, 9) == {"q": {"a"}}
    assert [(one.text, one.step, one.only) for one in finds(run_of(mixed), mixed, 9)] == [
        ("q", "", ("a",)),
        ("", "mean with turns", ("b",)),
    ]
    assert changed(run_of(mixed), mixed)


def test_lists_of_samples_belong_to_their_texts():
    each = SampleSearches(("one", "two"), (scored("ab"), scored("c")), 0.0, ())
    made = route("r", "", span(1, "search with each", "RETRIEVER", each))
    assert found_by_text(made, 9) == {"one": {"a", "b"}, "two": {"c"}}


def test_imagined_written_and_changed():
    assert imagined(stored("hyde")) == [IMAGINED]
    assert imagined(stored("rag_fusion")) == []
    short = route("r", "", wrote(1, "q", "short", role="passages"), wrote(2, "q", "v" * 200, role="variants"))
    assert imagined(short) == ["short"]
    assert written(RUN, stored("rewrite")) == [STANDALONE]
    assert written(RUN, stored("hyde")) == [IMAGINED]
    assert [r.route for r in RUN.results if changed(RUN, r)] == ["rewrite", "rag_fusion", "hyde"]


def test_the_outcome_by_hand_tells_losses_of_the_same_search_alone():
    lost = route("lost", "z", wrote(1, "q", "other"), bm25(2, "other", "z"))
    silent = route("silent", "a")
    found = outcome(run_of(PLAIN, SEVERAL, lost, silent), {"y": 3, "a": 2, "x": 2, "c": 1}, 10)
    assert (found.changed, found.same, found.silent) == (("Several", "Lost"), ("Plain",), ("Silent",))
    assert found.finds == (("v2", "y"),)  # x came by two texts, a by the question
    assert found.losses == (("Lost", "a"),)  # c is but background
    near = route("d", "a", embed(1, "q"), dense(2, 1, "a"))
    words = route("w", "z", wrote(1, "q", "other"), bm25(2, "other", "z"))
    assert outcome(run_of(near, words), {"a": 3}, 10).losses == ()


def test_texts_that_stand_for_a_passage():
    keyed = span(1, "search keys", "RETRIEVER", Search(("q",), keys={"a": "key", "b": ""}), "ab")
    assert standing_for(route("r", "ab", keyed), "a") == ["key"]
    assert standing_for(route("r", "ab", keyed), "b") == []


# The tree.


def shape(branch):
    return {branch.text: [shape(one) for one in branch.branches]}


def test_variants_hang_below_the_question_and_one_text_makes_no_tree():
    root = tree(run_of(SEVERAL), SEVERAL, 10)
    assert shape(root) == {"q": [{"v1": []}, {"v2": []}]}
    assert [(one.step, one.found) for one in root.all()] == [
        ("", ("a", "b")),
        ("write", ("b", "x")),
        ("write", ("x", "y", "b")),
    ]
    assert tree(run_of(PLAIN), PLAIN, 10) is None
    assert tree(RUN, stored("hybrid_rrf"), 10) is None


def test_parts_in_turn_hang_below_the_answer_they_need():
    made = route(
        "turn",
        "b",
        wrote(1, "q", "Who made it?", "Where was #1 born?", role="parts"),
        bm25(2, "q", "a"),
        bm25(3, "Who made it?", "ab"),
        span(4, "look for a short answer", "LLM", ShortAnswer("Who made it?", "Ada", "a"), note="sure"),
        wrote(5, "Where was #1 born?", "Where was Ada born?"),
        bm25(6, "Where was Ada born?", "c"),
    )
    root = tree(run_of(made), made, 10)
    assert shape(root) == {"q": [{"Who made it?": [{"Where was #1 born?": [{"Where was Ada born?": []}]}]}]}
    who = root.branches[0]
    assert (who.answer, who.note, who.found, who.branches[0].found) == ("Ada", "sure", ("a", "b"), None)


def chose(number, decision, text):
    return span(number, "reason", "AGENT", Decision(decision, ("search", "answered"), "", text=text))


def test_sentences_and_actions_hang_below_the_search_before_them():
    made = route(
        "loop",
        "a",
        bm25(1, "q", "a"),
        chose(2, "search", "First."),
        bm25(3, "First.", "b"),
        chose(4, "search", "then"),
        bm25(5, "then", ""),
        chose(6, "answered", "So it is."),
    )
    root = tree(run_of(made), made, 10)
    assert shape(root) == {"q": [{"First.": [{"then": []}]}]}
    assert root.branches[0].branches[0].found == ()


def test_a_tree_of_anything_ends():
    texts = [(), ("",), ("q", "#1 #2 #9", "q"), ("r",)]
    outputs = [NOTHING, *(Rewrite(one, (*some,), "parts") for one in ("", "q", "r") for some in texts)]
    outputs += [Decision("x", (), "", text=text) for text in ("", "q", "new")]
    outputs += [ShortAnswer(text, text) for text in ("", "q", "r")]
    outputs += [Search(one) for one in texts] + [SampleSearches(one, (), None, ()) for one in texts]
    spans = [
        span(n, "x", kind, one, "a", args={"text": 1, "question": ["q"]}, note="n")
        for n, (kind, one) in enumerate(((k, o) for k in ("LLM", "RETRIEVER") for o in outputs), 1)
    ]
    last = len(spans) + 1
    many = (bm25(last + n, f"t{n}", "a") for n in range(90))
    made = route("odd", "a", *spans, *many)
    assert 50 < sum(1 for _ in tree(run_of(made), made, 10).all()) <= MAX_TREE_TEXTS
    outcome(run_of(made), {"a": 3}, 10)
