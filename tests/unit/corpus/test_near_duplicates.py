"""Near-duplicates of a corpus, against brute force."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus import near_duplicates
from core.domain.errors import BadInput, Cancelled
from core.domain.types import Passage
from core.steps.select import resemblance
from tests.fakes import HashEmbedder

WORDS = st.sampled_from(["a", "b", "c", "d", "E", "é", "42", "-", "a.b"])
TEXTS = st.lists(st.lists(WORDS, max_size=14).map(" ".join), max_size=12)


def corpus(texts, vectors=None, per_document=2):
    matrix = HashEmbedder().embed(texts) if vectors is None else np.asarray(vectors, np.float32)
    passages = [Passage(f"p{n}", f"d{n // per_document}", "", text) for n, text in enumerate(texts)]
    return SimpleNamespace(
        fingerprint="f",
        everything=lambda: [(n, p, {}) for n, p in enumerate(passages)],
        vectors=lambda rows: matrix[list(rows)] if len(texts) else np.zeros((0, 4), np.float32),
    )


def brute(similarity, texts, least):
    """Each two rows that are no later copy of another, with their similarity."""
    seen = {}
    firsts = [n for n, text in enumerate(texts) if seen.setdefault(" ".join(text.split()), n) == n]
    return {
        (a, b): similarity[a, b]
        for i, a in enumerate(firsts)
        for b in firsts[i + 1 :]
        if similarity[a, b] >= least
    }


def pairs(found):
    return {tuple(pair): value for pair, value in zip(found.pairs.tolist(), found.similarity, strict=True)}


@given(TEXTS)
def test_words_find_what_comparing_every_two_finds(texts):
    found = near_duplicates.find(corpus(texts), "words")
    assert pairs(found) == brute(resemblance(texts), texts, near_duplicates.LEAST["words"])
    assert sorted(found.similarity, reverse=True) == list(found.similarity)


@given(st.lists(st.text(alphabet="abc ", min_size=1, max_size=20), max_size=10), st.integers(0, 1000))
def test_vectors_find_what_comparing_every_two_finds(texts, seed):
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(len(texts), 3)).astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    found = near_duplicates.find(corpus(texts, vectors), "embedding")
    exact = np.round(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 6)
    wanted = brute(exact, texts, near_duplicates.LEAST["embedding"])
    assert pairs(found).keys() == wanted.keys()
    assert pairs(found) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("by", ["words", "embedding"])
def test_blocks_leave_no_pair_out(monkeypatch, by):
    draw = np.random.default_rng(3)
    texts = [" ".join(draw.choice(list("abc"), 7)) for _ in range(120)]
    whole = near_duplicates.find(corpus(texts), by)
    monkeypatch.setattr(near_duplicates, "BLOCK", 7)
    monkeypatch.setattr(near_duplicates, "CHUNK", 3)
    assert pairs(near_duplicates.find(corpus(texts), by)) == pairs(whole)
    assert len(whole.pairs) > 20


def test_copies_are_counted_apart_and_stand_in_groups():
    texts = [
        "one two three four five",
        "one two  three four five\n",
        "one two three four",
        "quite another thing",
    ]
    found = near_duplicates.find(corpus(texts, per_document=1), "words")
    assert found.copies == ((0, 1),)
    assert pairs(found) == {(0, 2): pytest.approx(2 / 3)}
    assert (found.groups(0.6), found.groups(0.9)) == ([(0, 1, 2)], [(0, 1)])
    assert found.in_words(0.6) == (
        "Passages that repeat another word for word: 1. Pairs with a share of 3-word shingles of 0.60 or"
        " more: 1, 1 of them across documents; the highest is 0.67."
    )


def test_pairs_within_a_document_can_be_left_out():
    texts = ["a b c d", "a b c d e", "a b c d e f"]  # the first two are of one document
    found = near_duplicates.find(corpus(texts), "words")
    assert len(found.above(0.5)) == 3
    assert {tuple(found.pairs[at]) for at in found.above(0.5, across=True)} == {(0, 2), (1, 2)}


def test_more_pairs_than_are_kept_leave_the_most_alike_and_say_so(monkeypatch):
    texts = [" ".join("abcdefghijklmnop"[:n]) for n in range(4, 17)]
    whole = near_duplicates.find(corpus(texts), "words")
    monkeypatch.setattr(near_duplicates, "MOST", 10)
    monkeypatch.setattr(near_duplicates, "BLOCK", 2)
    few = near_duplicates.find(corpus(texts), "words")
    assert len(few.pairs) <= 10 < len(whole.pairs)
    assert few.complete > near_duplicates.LEAST["words"]
    assert pairs(few) == {pair: value for pair, value in pairs(whole).items() if value >= few.complete}


# More passages than are compared one by one.


@pytest.mark.parametrize(
    ("by", "graph", "way"),
    [("words", True, "compare by meaning"), ("embedding", False, "set exact_below to fewer passages")],
)
def test_too_many_passages_are_refused_with_the_way_out_and_none_have_no_pairs(by, graph, way, monkeypatch):
    monkeypatch.setattr(near_duplicates, "LARGE", 3)
    with pytest.raises(BadInput, match=f"4 passages are too many .*at most 3.*{way}"):
        near_duplicates.find(corpus(["a", "b", "c", "d"]), by, graph=graph)
    assert near_duplicates.find(corpus(["a", "b", "c"]), by).sampled is False
    found = near_duplicates.find(corpus([]), by)
    assert (len(found.pairs), found.copies, found.groups(0.5)) == (0, (), [])
    assert found.in_words(0.9).endswith("0.90 or more: 0, 0 of them across documents.")
    with pytest.raises(BadInput, match="words, embedding"):
        near_duplicates.find(corpus([]), "sound")


@given(st.integers(0, 1000))
def test_the_graph_finds_what_comparing_every_two_finds_among_the_nearest(seed):
    draw = np.random.default_rng(seed)
    vectors = np.repeat(draw.normal(size=(10, 8)), 4, axis=0) + draw.normal(scale=0.2, size=(40, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    texts = [f"text {n % 38}" for n in range(40)]  # two repeat others
    made = corpus(texts, vectors)
    scores = vectors @ vectors.T

    def neighbours(rows, k):
        return [[(int(row), float(scores[own, row])) for row in np.argsort(-scores[own])[:k]] for own in rows]

    made.neighbours = neighbours
    everything = near_duplicates.find(made, "embedding")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "LARGE", 30)
        patch.setattr(near_duplicates, "BLOCK", 7)
        found = near_duplicates.find(made, "embedding", graph=True)
    assert found.sampled
    assert pairs(found) == pairs(everything)
    assert found.copies == everything.copies
    assert len(found.pairs) == len({tuple(pair) for pair in found.pairs.tolist()})


@pytest.mark.parametrize("graph", [False, True])
def test_it_can_be_stopped(monkeypatch, graph):
    monkeypatch.setattr(near_duplicates, "LARGE", 1 if graph else 10)

    def stop(done, total):
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        near_duplicates.find(corpus(["a b", "b c"]), "embedding", stop, graph=graph)
