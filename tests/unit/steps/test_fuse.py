"""Fusion against hand-worked numbers, a second implementation written the slow way, and properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.fusion import dbsf, linear, rrf
from core.domain.types import Hit, Passage


def ranking(*pairs):
    return tuple(Hit(Passage(id, id, id, f"text of {id}"), score) for id, score in pairs)


def table(result):
    return {hit.passage.id: hit.score for hit in result}


one_list = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(-5, 5)), max_size=8).map(
    lambda pairs: ranking(*sorted(pairs, key=lambda p: -p[1]))
)
lists = st.lists(one_list, max_size=4)


def test_ties_break_by_passage_id():
    assert [h.passage.id for h in rrf([ranking(("b", 1)), ranking(("a", 1))])] == ["a", "b"]


@given(lists, st.integers(0, 100))
def test_rrf_equals_the_sum_written_out(found, k):
    ids = {hit.passage.id for one in found for hit in one}
    expected = {}
    for id in ids:
        total = 0.0
        for one in found:
            distinct = list(dict.fromkeys(hit.passage.id for hit in one))
            if id in distinct:
                total += 1 / (k + distinct.index(id) + 1)
        expected[id] = total
    assert table(rrf(found, k=k)) == pytest.approx(expected)


@given(lists)
def test_linear_equals_the_sum_written_out(found):
    expected = {}
    for one in found:
        scores = {}
        for hit in one:
            scores.setdefault(hit.passage.id, hit.score)
        for id, score in scores.items():
            low, high = min(scores.values()), max(scores.values())
            expected[id] = expected.get(id, 0) + (1.0 if low == high else (score - low) / (high - low))
    fused = linear(found)
    assert table(fused) == pytest.approx(expected)
    assert all(math.isfinite(hit.score) for hit in fused)


@given(lists)
def test_fusion_is_sorted_complete_and_blind_to_the_order_of_equal_weight_lists(found):
    for fuse in (rrf, linear):
        fused = fuse(found)
        assert [h.score for h in fused] == sorted((h.score for h in fused), reverse=True)
        assert len({h.passage.id for h in fused}) == len(fused)
        turned = table(fuse(found[::-1]))
        assert turned == pytest.approx(table(fused))


@given(st.lists(st.tuples(one_list, st.floats(0, 10)), max_size=4))
def test_weights_multiply_each_lists_share(drawn):
    found, weights = [one for one, _ in drawn], [weight for _, weight in drawn]
    expected_rrf, expected_linear = {}, {}
    for one, weight in zip(found, weights, strict=True):
        alone = {hit.passage.id: hit.score for hit in reversed(one)}  # of repeats the first stays
        values = np.array(list(alone.values()))
        spread = np.ptp(values) if len(values) else 0
        for id, score in alone.items():
            share = (score - values.min()) / spread if spread else 1.0
            expected_linear[id] = expected_linear.get(id, 0) + weight * share
        for rank, id in enumerate(dict.fromkeys(hit.passage.id for hit in one)):
            expected_rrf[id] = expected_rrf.get(id, 0) + weight / (61 + rank)
    assert table(rrf(found, weights=weights)) == pytest.approx(expected_rrf)
    assert table(linear(found, weights=weights)) == pytest.approx(expected_linear)


def test_dbsf_by_hand():
    # mean 2, sample deviation 1: from -1 to 5
    assert dbsf({"a": 3.0, "b": 2.0, "c": 1.0}) == pytest.approx({"a": 4 / 6, "b": 3 / 6, "c": 2 / 6})
    fused = linear([ranking(("a", 3), ("b", 2), ("c", 1)), ranking(("d", 9))], norm="dbsf", weights=(1, 2))
    assert table(fused) == pytest.approx({"d": 1.0, "a": 4 / 6, "b": 3 / 6, "c": 2 / 6})


def test_dbsf_of_single_hits_ties_and_nothing_is_defined():
    assert dbsf({}) == {}
    assert dbsf({"a": 7.0}) == {"a": 0.5}
    assert dbsf(dict.fromkeys("abc", 0.1)) == dict.fromkeys("abc", 0.5)  # their mean is not quite 0.1
    assert linear([(), ()], norm="dbsf") == ()


def test_dbsf_is_clipped_where_one_hit_stands_out():
    scores = {f"p{n}": 0.0 for n in range(30)} | {"far": 1.0}
    assert dbsf(scores)["far"] == 1.0


@given(lists)
def test_dbsf_equals_numpys(found):
    expected = {}
    for one in found:
        alone = {hit.passage.id: hit.score for hit in reversed(one)}
        values = np.array(list(alone.values()), np.longdouble)
        for id, score in alone.items():
            part = 0.5
            if len(values) > 1 and np.ptp(values) > 0:
                low, high = (values.mean() + side * 3 * values.std(ddof=1) for side in (-1, 1))
                part = float(np.clip((score - low) / (high - low), 0, 1)) if high > low else part
            expected[id] = expected.get(id, 0) + part
    fused = linear(found, norm="dbsf")
    assert table(fused) == pytest.approx(expected, abs=1e-6)
    assert [h.score for h in fused] == sorted((h.score for h in fused), reverse=True)


def test_an_unknown_normalisation_is_bad_input():
    with pytest.raises(BadInput, match="'zscore'; known: z, min_max, dbsf"):
        linear([ranking(("a", 1))], norm="zscore")


@pytest.mark.parametrize("fuse", [rrf, linear])
def test_an_option_that_would_do_nothing_is_an_error(fuse):
    with pytest.raises(BadInput, match="1 weights for 2 lists"):
        fuse([ranking(("a", 1)), ranking(("b", 1))], weights=[1])
