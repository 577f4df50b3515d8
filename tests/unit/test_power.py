"""How many questions it takes to tell two routes apart: published values, and the test itself counted out."""

import math

import numpy as np
import pytest
from scipy import stats

from core.evaluation.effects import power_of
from core.evaluation.power import needed


@pytest.mark.parametrize(("d_z", "pairs"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15)])
def test_the_pairs_that_g_power_gives_are_about_two_more(d_z, pairs):
    """G*Power 3.1, t test of matched pairs, two-sided, alpha 0.05, power 0.8 (Faul et al. 2007)."""
    assert 1 < pairs - needed(d_z, 1.0) < 3.5


@pytest.mark.parametrize("d_z", [0.1, 0.25, 0.6])
def test_it_is_the_least_number_at_which_the_t_test_has_the_power(d_z):
    least = next(n for n in range(2, 2000) if power_of(n, d_z) >= 0.8)
    assert 0 < least - needed(d_z, 1.0) < 3.5


def test_so_many_questions_show_the_difference_four_times_in_five():
    rng = np.random.default_rng(1)
    n = math.ceil(needed(0.1, 0.4))
    p = stats.ttest_1samp(rng.normal(0.1, 0.4, (4000, n)), 0.0, axis=1).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.025)
