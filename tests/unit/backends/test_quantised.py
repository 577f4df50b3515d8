"""Coded vectors: against brute force over decoded numbers, and in a route."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.vector import QuantisedIndex
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine


def unit(seed, n, dim):
    vectors = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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
