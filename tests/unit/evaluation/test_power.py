"""The power of the t+1 interval and how many questions it takes: published values, scipy and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import statistics


@pytest.mark.parametrize(("d_z", "pairs"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15)])
def test_the_power_of_student_is_that_of_published_tables(d_z, pairs):
    """G*Power 3.1, t test of matched pairs, two-sided, alpha 0.05, power 0.8 (Faul et al. 2007)."""
    now, fewer = (statistics.power_of(n, d_z, 1.0, bounded=False) for n in (pairs, pairs - 1))
    assert fewer < 0.8 <= now + 0.001
    edge = stats.t.isf(0.025, pairs - 1)
    assert now == pytest.approx(stats.nct.sf(edge, pairs - 1, d_z * math.sqrt(pairs)), abs=1e-4)


@pytest.mark.parametrize(
    ("n", "delta", "sd", "above"),
    [
        (10, 0.4, 0.3, 0.0),
        (30, 0.1, 0.2, 0.0),
        (109, 0.0, 0.15, -0.05),
        (60, 0.02, 0.1, -0.05),
    ],
)
def test_the_power_is_that_of_simulated_intervals(n, delta, sd, above):
    drawn = np.random.default_rng(n).normal(delta, sd, (4000, n))
    padded = np.concatenate([drawn, np.full((4000, 1), -1.0), np.ones((4000, 1))], axis=1)
    ends = padded.mean(axis=1) - stats.t.ppf(0.975, n + 1) * stats.sem(padded, axis=1)
    assert statistics.power_of(n, delta, sd, above=above) == pytest.approx((ends > above).mean(), abs=0.025)


@pytest.mark.parametrize("sd", [0.0, 0.1, 0.25])
def test_needed_is_the_least_number_with_the_power(sd):
    for delta, above in ((0.1, 0.0), (0.0, -0.05)):
        found = statistics.needed(delta, sd, above=above)
        assert statistics.power_of(found, delta, sd, above=above) >= 0.8
        assert statistics.power_of(found - 1, delta, sd, above=above) < 0.8


def test_tied_questions_exclude_a_loss_of_the_margin_from_nearly_three_over_it():
    assert [statistics.needed(0.0, 0.0, above=-margin) for margin in (0.1, 0.05, 0.02)] == [28, 56, 139]
    assert (
        statistics.difference_interval([0.0] * 56)[0] > -0.05 > statistics.difference_interval([0.0] * 55)[0]
    )


def test_no_number_shows_what_is_not_so():
    assert statistics.needed(0.0, 0.2) is None
    assert statistics.needed(-0.06, 0.0, above=-0.05) is None
    assert statistics.needed(0.0001, 0.3) is None


@given(st.integers(6, 2000), st.floats(0.001, 0.05), st.floats(0.001, 1.0), st.booleans())
@settings(deadline=None, max_examples=50)
def test_what_is_detectable_is_shown_with_the_power_asked_for(n, alpha, sd, bounded):
    found = statistics.detectable(n, sd, alpha=alpha, bounded=bounded)
    if math.isinf(found):
        assert bounded
        assert statistics.power_of(n, 1.0, sd, alpha=alpha) == 0
    else:
        assert statistics.power_of(n, found, sd, alpha=alpha, bounded=bounded) == pytest.approx(0.8, abs=0.01)


def test_four_of_five_pilots_have_a_true_spread_below_the_upper_limit():
    drawn = np.random.default_rng(1).normal(0, 0.3, (4000, 12)).std(axis=1, ddof=1)
    assert np.mean([statistics.upper_sd(sd, 12) > 0.3 for sd in drawn]) == pytest.approx(0.8, abs=0.02)
