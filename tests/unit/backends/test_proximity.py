"""Reranking by proximity: its signals against a plain reading of their definitions, and the route."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.rerankers.blend import weighted_maxsim, windowed_maxsim
from core.backends.rerankers.proximity import NEAR, pair_scores, parts
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine

ASKED = "Are fragile items double boxed by express shipping?"


@given(
    st.lists(st.sampled_from("abcd"), max_size=6),
    st.lists(st.lists(st.sampled_from("abcdxyz"), max_size=30), min_size=1, max_size=4),
)
def test_pairs_by_their_definition(question, passages):
    idf = {"a": 1.0, "b": 2.0, "c": 3.5, "d": 0.5}
    pairs = {tuple(sorted(pair)) for pair in pairwise(question)}
    mean = max(1.0, sum(map(len, passages)) / len(passages))
    for got, passage in zip(
        pair_scores([(term, idf[term]) for term in question], passages), passages, strict=True
    ):
        expected = 0.0
        for a, b in pairs:
            count = sum(
                {a, b} == {term, other}
                for at, term in enumerate(passage)
                for other in set(passage[at + 1 : at + NEAR])
                if a != b
            )
            k = 1.5 * (0.25 + 0.75 * len(passage) / mean)
            expected += (idf[a] + idf[b]) / 2 * count / (count + k) if count else 0.0
        assert got == pytest.approx(expected)


@given(st.integers(0, 10_000), st.lists(st.integers(0, 150), min_size=1, max_size=4))
def test_windowed_maxsim_by_its_definition(seed, lengths):
    rng = np.random.default_rng(seed)

    def unit(rows):
        vectors = rng.normal(size=(rows, 5)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    query, weights, passages = unit(3), rng.random(3), [unit(length) for length in lengths]
    got = windowed_maxsim(query, weights, passages)
    for score, passage in zip(got, passages, strict=True):
        windows = [passage[at : at + 64] for at in range(0, len(passage), 32)]
        best = max((weights @ (query @ one.T).max(axis=1) for one in windows), default=0.0)
        assert score == pytest.approx(best, abs=2e-6)
    assert (got <= weighted_maxsim(query, weights, passages) + 1e-6).all()


def test_signals_are_scaled_by_mean_and_deviation_and_pairs_with_bm25():
    raw = {
        "bm25": np.array([1.0, 3.0]),
        "pairs": np.array([0.0, 4.0]),
        "cosine": np.array([0.2, 0.2]),
        "maxsim": np.array([0.5, 0.1]),
        "window": np.array([0.1, 0.5]),
    }
    got = parts(raw)  # BM25 with half of pairs: 1 and 5, mean 3, deviation 2
    assert {name: one.tolist() for name, one in got.items()} == {
        "bm25": [-0.5, 0.5],
        "pairs": [-0.5, 0.5],
        "cosine": [0.0, 0.0],
        "maxsim": pytest.approx([1.0, -1.0]),
        "window": pytest.approx([-0.5, 0.5]),
    }


def test_the_route_reranks_by_the_recorded_parts(tmp_path):
    engine = FakeEngine(tmp_path)
    (result,) = engine.ask(Request(Query(ASKED), "tiny", ("rerank_proximity",))).results
    assert (result.status, result.error) == ("ok", None)
    span = next(one for one in result.spans if one.name.startswith("rerank"))
    order = span.output.order
    corpus = engine.corpus("tiny")
    passages = [hit.passage for hit in result.hits][: len(order)]
    terms = [corpus.analyzer.terms(f"{one.title} {one.text}") for one in passages]
    found = pair_scores(corpus.terms(ASKED), terms)
    assert [one.id for one in order] == [one.id for one in passages]
    assert [one.parts["pairs"][0] for one in order] == pytest.approx(found.tolist())
    raw = {name: np.array([one.parts[name][0] for one in order]) for name in order[0].parts}
    scores = np.sum(list(parts(raw).values()), axis=0)
    assert [one.score for one in order] == pytest.approx(scores.tolist())
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)
    assert raw["pairs"].max() > 0
