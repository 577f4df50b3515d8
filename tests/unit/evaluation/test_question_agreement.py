"""Kendall's tau of two orders of routes, against scipy's, its interval and its ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from core.evaluation.questions.agreement import likeness, tau


@given(
    st.integers(3, 12).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2)
    )
)
def test_tau_is_scipys(pair):
    first, second = (np.array(one, float) for one in pair)
    expected = kendalltau(first, second, variant="b").statistic
    assert tau(first, second) == pytest.approx(0.0 if np.isnan(expected) else expected)


def drawn(rng, means, n):
    """0/1 scores of routes with these true means on `n` questions, some harder for all."""
    hard = rng.normal(0, 0.2, n)
    return (rng.random((len(means), n)) < np.clip(np.array(means)[:, None] + hard, 0, 1)).astype(float)


@pytest.mark.parametrize("routes", [3, 6])
def test_clear_orders_agree_and_reversed_ones_do_not(routes):
    rng = np.random.default_rng(1)
    clear = np.arange(routes)[:, None] / routes + rng.normal(0, 0.01, (routes, 30))
    assert likeness(clear, clear) == ((1, 1), (1, 1), False)
    (low, high), _, disagree = likeness(clear, clear[::-1])
    assert disagree
    assert low == high == -1


def test_the_ceiling_is_that_of_re_splits_counted_by_hand():
    """Against scipy's tau of each."""
    rng = np.random.default_rng(2)
    first, second = drawn(rng, [0.3, 0.5, 0.6, 0.7], 20), drawn(rng, [0.7, 0.5, 0.4, 0.6], 30)
    _, ceiling, disagree = likeness(first, second)
    pooled, found = np.concatenate([first, second], axis=1), []
    for _ in range(600):
        order = rng.permutation(50)
        sides = pooled[:, order[:20]].mean(axis=1), pooled[:, order[20:]].mean(axis=1)
        found.append(kendalltau(*sides).statistic)
    assert ceiling == pytest.approx(tuple(np.nanquantile(found, [0.05, 0.5])), abs=0.12)
    measured = kendalltau(first.mean(axis=1), second.mean(axis=1)).statistic
    assert disagree == (np.mean(np.array(found) <= measured) < 0.05)


def test_the_interval_is_wide_for_noise():
    rng = np.random.default_rng(4)
    (low, high), _, _ = likeness(rng.normal(0, 1, (6, 10)), rng.normal(0, 1, (6, 10)))
    assert -1 <= low < 0.5
    assert high == 1
