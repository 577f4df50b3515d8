"""Intervals, exact p-values and tests over many routes: against scipy, brute force and counting."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import statistics

THOUSANDTHS = st.lists(st.integers(-1000, 1000).map(lambda n: n / 1000), min_size=1, max_size=11)


def enumerated(differences):
    """The share of all sign changes with a sum at least as far from 0, counted one by one in thousandths."""
    whole = [round(1000 * one) for one in differences]
    sums = [
        abs(sum(map(int.__mul__, whole, signs))) for signs in itertools.product((1, -1), repeat=len(whole))
    ]
    return sum(one >= abs(sum(whole)) for one in sums) / len(sums)


def test_the_interval_is_the_t_interval_of_the_data_and_a_value_at_each_bound():
    values = np.random.default_rng(1).beta(5, 1, 30)
    padded = [*values, 0.0, 1.0]
    ends = stats.t.interval(0.95, 31, loc=np.mean(padded), scale=stats.sem(padded))
    assert statistics.mean_interval(list(values)) == pytest.approx((ends[0], min(1, ends[1])))
    apart = np.random.default_rng(2).normal(0.1, 0.2, 40).clip(-1, 1)
    padded = [*apart, -1.0, 1.0]
    ends = stats.t.interval(0.99, 41, loc=np.mean(padded), scale=stats.sem(padded))
    assert statistics.difference_interval(list(apart), level=0.99) == pytest.approx(ends)
    wide = statistics.difference_interval(list(3 * apart), span=3.0, level=0.99)
    assert wide == pytest.approx([3 * end for end in ends])


def test_intervals_at_the_edges():
    assert statistics.mean_interval([]) is None
    assert statistics.mean_interval([0.7]) == (0, 1)
    assert statistics.mean_intervals([]) == []
    assert statistics.mean_intervals([[], [1.0] * 30]) == [None, statistics.mean_interval([1.0] * 30)]
    low, high = statistics.mean_interval([1.0] * 30)
    assert (0.86 < low < 0.95, high) == (True, 1.0)
    low, high = statistics.difference_interval([0.0] * 60)
    assert -0.05 < low == -high, "60 tied questions exclude a loss of .05"
    assert statistics.difference_interval([0.0] * 55)[0] < -0.05
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.mean_interval([0.5, 1.2])


def test_the_interval_without_bounds_is_scipys():
    times = np.random.default_rng(3).gamma(2, 50, 25)
    ends = stats.t.interval(0.95, 24, loc=times.mean(), scale=stats.sem(times))
    assert statistics.unbounded_interval(list(times)) == pytest.approx(ends)
    assert statistics.unbounded_interval([1.0]) is None


@given(THOUSANDTHS)
def test_p_is_that_of_all_sign_changes_counted_one_by_one(differences):
    assert statistics.sign_flip_p(differences) == pytest.approx(enumerated(differences), rel=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=14), st.sampled_from([1, 3, 4, 7, 9, 10]))
@settings(deadline=None)
def test_p_of_fractions_is_that_of_their_numerators(numerators, denominator):
    """Thirds and ninths keep their ties, as scipy counts them for whole numbers."""
    found = statistics.sign_flip_p([one / denominator for one in numerators])
    expected = enumerated(numerators)
    assert found == pytest.approx(expected, rel=1e-12)


def test_p_is_scipys():
    for n in (6, 10, 13):
        apart = np.round(np.random.default_rng(n).normal(0.1, 0.3, n), 3)
        exact = stats.permutation_test(
            (apart,),
            lambda x, axis: np.round(x.mean(axis), 9),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        )
        assert statistics.sign_flip_p(list(apart)) == pytest.approx(exact.pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [20, 60, 200, 800])
def test_p_is_the_sign_test_where_all_differences_are_one(n):
    """Down to 1e-60 and beyond."""
    assert statistics.sign_flip_p([1.0] * n) == pytest.approx(2.0 ** (1 - n), rel=1e-9)
    losses = n // 5
    apart = [1.0] * (n - losses) + [-1.0] * losses + [0.0] * 7
    assert statistics.sign_flip_p(apart) == pytest.approx(stats.binomtest(losses, n).pvalue, rel=1e-9)


def test_p_far_below_what_can_be_counted_is_not_zero():
    assert 0 < statistics.sign_flip_p([1.0] * 5000) < 1e-300


def test_p_does_not_depend_on_the_unit():
    apart = np.random.default_rng(5).normal(0.02, 0.1, 50)
    p = statistics.sign_flip_p(list(apart))
    assert statistics.sign_flip_p(list(apart * 1e-6)) == pytest.approx(p)
    assert statistics.sign_flip_p(list(apart * 1e5)) == pytest.approx(p)
    assert statistics.sign_flip_p([0.0] * 30) == 1.0
    assert statistics.sign_flip_p([]) == 1.0


def test_three_hundred_comparisons_of_two_hundred_questions_take_about_a_second():
    drawn = np.random.default_rng(6)
    apart = np.clip(drawn.normal(0.02, 0.24, (300, 200)), -1, 1) * (drawn.random((300, 200)) < 0.5)
    began = time.process_time()
    for column in apart:
        statistics.sign_flip_p(column)
    assert time.process_time() - began < 3


def max_t_enumerated(table):
    """All 2^n flips: the adjusted p of each pair, which is the same in both directions."""
    pairs = list(itertools.combinations(range(len(table)), 2))
    apart = np.array([table[one] - table[other] for one, other in pairs])
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=table.shape[1])))
    far = np.abs(signs @ apart.T) / np.sqrt((apart**2).sum(axis=1))
    largest = far.max(axis=1)
    return {
        pair: np.mean(largest >= at - 1e-9)
        for pair, at in zip(pairs, np.abs(apart.sum(axis=1)) / np.sqrt((apart**2).sum(axis=1)), strict=True)
    }


def test_worse_than_is_the_max_t_test_over_all_flips():
    drawn = np.random.default_rng(7)
    table = drawn.random((4, 12)) * 0.5 + np.array([[0.0], [0.1], [0.3], [0.5]])
    found = statistics.worse_than(table)
    for (one, other), p in max_t_enumerated(table).items():
        behind, ahead = (one, other) if table[one].mean() < table[other].mean() else (other, one)
        assert found[behind, ahead] == pytest.approx(p, abs=0.015)
        assert found[ahead, behind] == 1
    assert (np.diag(found) == 1).all()
    assert (found == statistics.worse_than(table)).all(), "the same each time"


def test_worse_than_over_common_questions_only():
    table = np.random.default_rng(8).random((3, 60))
    table[2] = table[0] - 0.4
    table[2, 30:] = np.nan
    found = statistics.worse_than(table)
    assert found[2, 0] == pytest.approx(1 / (statistics.FLIPS + 1))
    table[1, ::2] = np.nan
    assert statistics.worse_than(table)[2, 0] < 0.01
    table[1] = table[0]
    assert statistics.worse_than(table)[[0, 1], [1, 0]].tolist() == [1, 1]
    assert (statistics.worse_than(np.empty((3, 0))) == 1).all()


def test_worse_than_among_sixty_routes_takes_seconds():
    table = np.random.default_rng(9).random((60, 400))
    began = time.perf_counter()
    assert statistics.worse_than(table).min() > 0.01
    assert time.perf_counter() - began < 15


@pytest.mark.parametrize(("comparisons", "least"), [(1, 6), (10, 9), (300, 14)])
def test_fewer_questions_can_show_nothing(comparisons, least):
    assert statistics.least_to_show(comparisons) == least
    assert statistics.sign_flip_p([1.0] * least) * comparisons <= 0.05
    assert statistics.sign_flip_p([1.0] * (least - 1)) * comparisons > 0.05


@pytest.mark.parametrize(("margin", "least"), [(0.1, 30), (0.05, 60), (0.03, 100), (0.02, 150)])
def test_questions_needed_for_an_equivalence(margin, least):
    assert statistics.least_for_equivalence(margin) == least
    assert math.exp(-margin * least) == pytest.approx(0.05, rel=0.01)
