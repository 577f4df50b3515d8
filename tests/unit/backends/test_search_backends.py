"""BM25, vectors and top-k against brute force and second implementations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.backends import sparse
from core.backends.sparse import BM25Index, RankBM25Index, top_k, write_index
from core.backends.terms import Analyzer, analyzer
from core.backends.vector import BUILD_EFFORT, LINKS, FaissIndex, QuantisedIndex, write_graph
from core.domain.errors import BadInput
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine

WORDS = "return refund label parcel carrier customs damage box glass chilled invoice payment key retry"
ENGLISH = analyzer("english")


def make(folder: Path, texts: Sequence[str], how: Analyzer = ENGLISH) -> BM25Index:
    write_index(texts, folder / "bm25", how)
    return BM25Index(folder / "bm25", len(texts))


def corpus(seed: int, size: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS.split(), rng.integers(1, 30))) for _ in range(size)]


# top-k


def by_full_sort(scores: np.ndarray, k: int) -> list[tuple[int, float]]:
    order = sorted(
        (row for row in range(len(scores)) if scores[row] > 0), key=lambda row: (-scores[row], row)
    )
    return [(row, float(scores[row])) for row in order[: max(k, 0)]]


values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0, 2.5, -1.0]) | st.floats(0, 10, width=32)


@given(arrays.arrays(np.float32, st.integers(0, 1200), elements=values), st.integers(-1, 30) | st.just(2000))
def test_top_k_equals_a_full_sort(scores: np.ndarray, k: int) -> None:
    assert top_k(scores, k) == by_full_sort(scores, k)


@pytest.mark.parametrize("kind", ["all equal", "all zero", "one block", "random", "few values", "rising"])
def test_top_k_equals_a_full_sort_on_many_blocks(kind: str) -> None:
    rng, n = np.random.default_rng(1), 20_011
    scores = {
        "all equal": np.ones(n),
        "all zero": np.zeros(n),
        "one block": np.where(np.arange(n) // 256 == 7, rng.random(n), 0),
        "random": rng.random(n) * (rng.random(n) < 0.1),
        "few values": rng.integers(0, 3, n),
        "rising": np.arange(n) / n,
    }[kind].astype(np.float32)
    for k in (1, 10, 100, 5000):
        assert top_k(scores, k) == by_full_sort(scores, k)


# BM25


def test_terms_are_those_of_bm25s(tmp_path: Path) -> None:
    import bm25s
    import Stemmer

    texts = [*corpus(0, 5), "The QUICK brown-fox's jumping, naïve Größe x 42 don't", "", "the of and"]
    theirs = bm25s.tokenize(
        texts, stopwords="english", stemmer=Stemmer.Stemmer("english"), return_ids=False, show_progress=False
    )
    assert [ENGLISH.terms(text) for text in texts] == theirs


def test_scores_are_those_of_bm25s(tmp_path: Path) -> None:
    import bm25s

    texts = corpus(1, 300)
    index = make(tmp_path, texts)
    theirs = bm25s.BM25(k1=sparse.K1, b=sparse.B, method="lucene")
    theirs.index([ENGLISH.terms(text) for text in texts], show_progress=False)
    for question in ("how do I return a damaged box", "customs customs payment", "nothing known"):
        terms = [term for term in ENGLISH.terms(question) if term in theirs.vocab_dict]
        expected = theirs.get_scores(terms) if terms else np.zeros(len(texts))
        np.testing.assert_allclose(index.scores(question), expected, rtol=1e-5)


some_texts = st.lists(
    st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join), min_size=1, max_size=12
)
some_words = st.lists(st.sampled_from([*WORDS.split(), "unknown", "the"]), max_size=6)


@given(texts=some_texts, asked=some_words)
def test_scores_their_parts_and_places_agree_with_each_other_and_with_rank_bm25(
    texts: list[str], asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    index, question = make(tmp_path_factory.mktemp("bm25"), texts), " ".join(asked)
    ranked = [row for row, _ in index.search(question, len(texts))]
    for row, score in enumerate(index.scores(question)):
        parts = index.explain(question, row)
        assert sum(parts.values()) == pytest.approx(float(score), rel=1e-5)
        assert "the" not in parts
        assert index.place(question, row) == (ranked.index(row) + 1 if row in ranked else 0, len(ranked))
        assert index.score_of(texts[row], question) == pytest.approx(float(score), rel=1e-5)
    agree(index, RankBM25Index(texts, ENGLISH), question)


def agree(first: BM25Index, second: RankBM25Index, question: str) -> None:
    """Same scores, same hits, and the same order but where two scores are as good as equal."""
    mine, theirs = first.scores(question), second.scores(question)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)
    found, other = first.search(question, 20), second.search(question, 20)
    assert len(found) == len(other)
    for (row, score), (place, _) in zip(found, other, strict=True):
        assert row == place or score == pytest.approx(theirs[place], abs=1e-4)


@pytest.mark.parametrize("texts", [[], ["", "the of"]])
def test_nothing_is_found_in_no_terms(tmp_path: Path, texts: list[str]) -> None:
    for index in (RankBM25Index(texts, ENGLISH), make(tmp_path, texts)):
        assert index.search("anything", 5) == []
        assert index.scores("anything").shape == (len(texts),)


def test_a_passage_without_a_common_term_is_no_hit(tmp_path: Path) -> None:
    index = make(tmp_path, ["return the parcel", "customs duty", ""])
    assert [row for row, _ in index.search("parcels", 10)] == [0]  # the stem is common
    for question in ("the of", "zebra", "", "\ud800 \0", "🎉"):
        assert index.search(question, 10) == []
    assert index.explain("parcels zebra", 1) == {"parcels": 0.0, "zebra": 0.0}
    assert index.why_nothing("the of") == "the question has only stop words of English"
    assert "no word" in index.why_nothing("?")


def test_language_is_a_choice(tmp_path: Path) -> None:
    german = make(tmp_path, ["die Häuser und Straßen", "ein Auto"], analyzer("german"))
    assert [row for row, _ in german.search("Haus", 5)] == [0]
    assert german.search("und", 5) == []
    assert analyzer("none").terms("The Parcels") == ["the", "parcels"]
    with pytest.raises(BadInput, match="english"):
        analyzer("klingon")


@pytest.mark.trust
def test_no_file_of_an_index_can_hold_a_pickle(tmp_path: Path) -> None:
    make(tmp_path, corpus(3, 5))
    for file in (tmp_path / "bm25").iterdir():
        if file.suffix == ".npy":
            assert np.load(file, allow_pickle=False).dtype.hasobject is False
        else:
            assert file.suffix in (".json", ".bin")


# vectors


def unit(seed: int, n: int, dim: int = 24) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def brute(vectors: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    scores = (vectors * query).sum(axis=1)
    return sorted(range(len(vectors)), key=lambda row: (-scores[row], row))[:k]


@pytest.mark.parametrize("k", [1, 7, 500, 900])
def test_exact_search_is_brute_force_alone_and_in_batches(k: int) -> None:
    vectors, queries = unit(0, 700), unit(1, 12)
    index = FaissIndex(vectors)
    alone = [index.search(query, k) for query in queries]
    assert [[row for row, _ in found] for found in alone] == [brute(vectors, query, k) for query in queries]
    assert index.search_many(queries, k) == alone
    assert [index.search_exact(query, k) for query in queries] == alone


def test_equal_vectors_come_in_the_order_of_rows_even_across_the_edge(tmp_path: Path) -> None:
    one, vectors = unit(2, 1)[0], unit(3, 1000)
    equal = list(range(5, 1000, 7))
    vectors[equal] = one  # 143 equal ones
    write_graph(vectors, tmp_path / "graph")
    index, graph = FaissIndex(vectors), FaissIndex(vectors, tmp_path / "graph")
    assert (index.kind, graph.kind) == ("flat", "hnsw")
    assert index.recall(np.arange(20)) == FaissIndex(vectors[:0]).recall(np.arange(0)) == 1.0
    for k in (1, 10, 20, 100, 143):
        found = index.search(one, k)
        assert [row for row, _ in found] == equal[:k]
        assert index.search_many(np.stack([one] * 9), k) == [found] * 9
        if k <= 100:  # a graph does not reach each of 143 equal ones
            assert graph.search(one, k) == found
            assert graph.search_many(np.stack([one] * 3), k) == [found] * 3
    assert [row for row, _ in graph.search(vectors[17], 1)] == [17]
    assert [row for row, _ in graph.search_exact(vectors[17], 10)] == brute(vectors, vectors[17], 10)


def test_equal_vectors_behind_better_ones_are_seen_to_their_end() -> None:
    query = unit(2, 1)[0]
    vectors = -unit(3, 1000) * np.sign(unit(3, 1000) @ query)[:, None]  # all turned away from it
    equal = list(range(5, 1000, 7))
    vectors[equal] = (query + unit(6, 1)[0] * 0.2) / np.linalg.norm(query + unit(6, 1)[0] * 0.2)
    vectors[[900, 902]] = query
    assert not {900, 902} & set(equal)
    index = FaissIndex(vectors)
    for k in (1, 2, 3, 4, 10):
        assert [row for row, _ in index.search(query, k)] == [900, 902, *equal][:k]


def test_a_graph_is_built_with_the_effort_that_its_recall_was_measured_at(tmp_path: Path) -> None:
    import faiss

    write_graph(unit(4, 50), tmp_path / "graph")
    graph = faiss.read_index(str(tmp_path / "graph"))
    assert graph.hnsw.efConstruction == BUILD_EFFORT
    assert graph.hnsw.nb_neighbors(1) == LINKS


@pytest.mark.slow
def test_graph_search_reads_no_vectors_of_its_own_and_measures_itself(tmp_path: Path) -> None:
    wide = unit(4, 900, 256)
    write_graph(wide, tmp_path / "graph")
    assert (tmp_path / "graph").stat().st_size < wide.nbytes, "links and half-precision copies"
    vectors = unit(4, 3000)
    write_graph(vectors, tmp_path / "graph")
    write_graph(unit(5, 3000), tmp_path / "of others")
    index, lost = (FaissIndex(vectors, tmp_path / name) for name in ("graph", "of others"))
    assert index.kind == "hnsw"
    assert index.recall(np.arange(100)) > 0.99
    asked = unit(9, 100)  # harder than rows themselves: .94 are found with the usual effort of a search
    both = zip(index.search_many(asked, 10), (index.search_exact(one, 10) for one in asked), strict=True)
    assert np.mean([len({row for row, _ in a} & {row for row, _ in b}) / 10 for a, b in both]) > 0.98
    assert lost.recall(np.arange(100)) < 0.95, "the links of other vectors lead astray, and that is told"
    assert lost.search_exact(vectors[0], 5) == index.search_exact(vectors[0], 5)


def test_the_copies_of_a_graph_are_mapped_and_not_read_into_memory(tmp_path: Path) -> None:
    vectors = unit(4, 500)
    write_graph(vectors, tmp_path / "graph")
    index = FaissIndex(vectors, tmp_path / "graph")
    assert str(tmp_path / "graph") in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert index.search(vectors[7], 1)[0][0] == 7
    (tmp_path / "graph").unlink()  # as when the index is built again while somebody searches
    assert [index.search(one, 1)[0][0] for one in vectors] == list(range(500))


def test_no_vectors_no_hits() -> None:
    empty = FaissIndex(np.empty((0, 8), np.float32))
    assert empty.search(np.ones(8, np.float32), 5) == []
    assert FaissIndex(unit(5, 3, 8)).search(np.ones(8, np.float32), 0) == []


def test_one_question_uses_one_thread_whichever_thread_asks() -> None:
    import faiss

    index, seen = FaissIndex(unit(6, 300)), []

    def ask() -> None:
        faiss.omp_set_num_threads(3)
        index.search(unit(7, 1)[0], 5)
        seen.append(faiss.omp_get_max_threads())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1]


# coded vectors


@given(st.integers(0, 9_999), st.integers(1, 40), st.sampled_from([3, 8, 64, 70, 384]), st.integers(1, 50))
def test_bits_are_compared_one_by_one(seed, n, dim, k):
    vectors, (asked,) = unit(seed, n, dim), unit(seed + 1, 1, dim)
    found = QuantisedIndex([vectors[:7], vectors[7:]], dim, "binary").search(asked, k)
    same = [sum((a > 0) == (b > 0) for a, b in zip(asked, row, strict=True)) for row in vectors]
    scores = [1 - 2 * (dim - one) / dim for one in same]
    expected = sorted(range(n), key=lambda row: (-scores[row], row))[:k]
    assert [row for row, _ in found] == expected
    assert [score for _, score in found] == pytest.approx([scores[row] for row in expected])


@given(st.integers(0, 9_999), st.integers(1, 40))
def test_bytes_are_near_the_numbers(seed, n):
    vectors, (asked,) = unit(seed, n, 16), unit(seed + 1, 1, 16)
    found = dict(QuantisedIndex([vectors], 16, "int8").search(asked, n))
    assert len(found) == n
    for row, score in found.items():
        assert score == pytest.approx(float(vectors[row] @ asked), abs=0.02)
    for kind in ("binary", "int8"):
        assert QuantisedIndex([], 16, kind).search(asked, 5) == []


@pytest.mark.parametrize("codes", ["binary", "int8"])
def test_with_all_as_candidates_nothing_is_lost(tmp_path, codes):
    texts = {f"p{at:02}:0-9": f"parcel number {at} of {at % 7} and {at * 3}" for at in range(40)}
    request = Request(
        Query("parcel number 7"),
        "tiny",
        ("dense", "quantised"),
        parameters={"quantised": {"codes": codes, "candidates": 40, "compare": True}},
    )
    dense, mine = FakeEngine(tmp_path, texts=texts).ask(request).results
    assert (mine.status, mine.error) == ("ok", None)
    assert [hit.score for hit in mine.hits] == pytest.approx([hit.score for hit in dense.hits], abs=1e-6)
    names = [span.name for span in mine.spans if span.parent is None]
    assert names == ["embed", "search coded vectors", "search vectors", "score by exact inner product"]
    assert mine.spans[1].attributes["bytes of codes"] > 0


def test_few_candidates_are_all_there_is(tmp_path):
    texts = {f"p{at:02}:0-9": f"parcel number {at}" for at in range(40)}
    request = Request(Query("parcel"), "tiny", ("quantised",), parameters={"quantised": {"candidates": 10}})
    (mine,) = FakeEngine(tmp_path, texts=texts).ask(request).results
    assert len(mine.hits) == 10
    first, last = mine.spans[1], mine.spans[-1]
    assert {id for id, _ in first.hits} == {hit.passage.id for hit in mine.hits}
    assert {one.was for one in last.output.order} == set(range(1, 11))
