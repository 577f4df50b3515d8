"""Kendall's tau of two orders of routes, against scipy's, and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from core.evaluation.questions.agreement import interval, tau

SCORES = st.lists(st.integers(0, 6), min_size=3, max_size=12)


@given(
    st.integers(3, 12).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2)
    )
)
def test_tau_is_scipys(pair):
    first, second = (np.array(one, float) for one in pair)
    expected = kendalltau(first, second, variant="b").statistic
    assert tau(first, second) == pytest.approx(0.0 if np.isnan(expected) else expected)


@settings(max_examples=5)
@given(st.integers(0, 99))
def test_the_interval_holds_tau_of_clear_orders_and_is_wide_for_noise(seed):
    rng = np.random.default_rng(seed)
    clear = np.arange(6)[:, None] + rng.normal(0, 0.1, (6, 30))
    low, high = interval(clear, clear)
    assert low == high == pytest.approx(1.0)
    noise = rng.normal(0, 1, (6, 10))
    low, high = interval(noise, rng.normal(0, 1, (6, 10)))
    assert high - low > 0.3
    assert -1 <= low <= high <= 1
