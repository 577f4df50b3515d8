"""Fusion against hand-worked numbers, a second implementation written the slow way, and properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput
from core.steps.fuse import linear, min_max, rrf
from core.types import Hit, Passage


def ranking(*pairs):
    return tuple(Hit(Passage(id, id, id, f"text of {id}"), score) for id, score in pairs)


def table(result):
    return {hit.passage.id: hit.score for hit in result}


lists = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(-5, 5)), max_size=8).map(
        lambda pairs: ranking(*sorted(pairs, key=lambda p: -p[1]))
    ),
    max_size=4,
)


def test_rrf_by_hand():
    fused = rrf([ranking(("a", 9), ("b", 8)), ranking(("b", 0.5), ("c", 0.4))])
    assert [hit.passage.id for hit in fused] == ["b", "a", "c"]
    assert table(fused) == {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}


def test_rrf_weights_change_the_result_and_rank_counts_from_one():
    first, second = ranking(("a", 1)), ranking(("b", 1))
    assert table(rrf([first, second], weights=[2, 1])) == {"a": 2 / 61, "b": 1 / 61}
    assert rrf([first, second], weights=[1, 2])[0].passage.id == "b"


def test_a_duplicate_in_one_list_counts_once_at_its_best_rank():
    doubled = ranking(("a", 3), ("a", 2), ("a", 1), ("b", 1))
    assert table(rrf([doubled])) == {"a": 1 / 61, "b": 1 / 62}
    both = ranking(("c", 1))
    fused = rrf([ranking(("c", 5), ("a", 4), ("a", 3)), both])
    assert fused[0].passage.id == "c"


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


def test_single_hits_ties_and_empty_lists_have_defined_scores():
    assert table(linear([ranking(("a", 7))])) == {"a": 1.0}
    assert table(linear([ranking(("a", 7), ("b", 7))])) == {"a": 1.0, "b": 1.0}
    assert linear([(), ()]) == ()
    assert rrf([]) == ()
    assert min_max({}) == {}


def test_a_missing_passage_adds_nothing():
    fused = table(rrf([ranking(("a", 1)), ranking(("b", 1), ("c", 1))]))
    assert fused["a"] == 1 / 61


@pytest.mark.parametrize("fuse", [rrf, linear])
def test_an_option_that_would_do_nothing_is_an_error(fuse):
    with pytest.raises(BadInput, match="1 weights for 2 lists"):
        fuse([ranking(("a", 1)), ranking(("b", 1))], weights=[1])


def test_the_same_passage_object_whatever_the_order():
    one, other = ranking(("a", 1)), ranking(("a", 2))
    assert rrf([one, other])[0].passage == rrf([other, one])[0].passage
