"""What verdicts promise, by simulation with known truth: the quick part of `make test-claims`."""

import numpy as np
import pytest

from bench import claims
from core.evaluation import statistics


@pytest.fixture(autouse=True)
def _few_flips(monkeypatch):
    monkeypatch.setattr(statistics, "FLIPS", claims.FLIPS)


def error(share, count):
    """Three standard errors of a simulated share."""
    return 3 * (share * (1 - share) / count) ** 0.5


@pytest.mark.parametrize("name", claims.POPULATIONS)
@pytest.mark.parametrize("n", [5, 10, 30, 100, 400])
def test_intervals_cover_means_and_differences(name, n):
    rng = np.random.default_rng(n)
    table = claims.POPULATIONS[name](rng, 2)
    for column, low in ((table[0], 0.0), (table[0] - table[1], -1.0)):
        drawn = column[rng.integers(0, column.size, (400, n))]
        ends, truth = claims.intervals(drawn, low), column.mean()
        inside = (ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1])
        assert inside.mean() >= 0.93 - error(0.93, 400)


@pytest.mark.parametrize("name", claims.POPULATIONS)
def test_equal_routes_are_rarely_shown_worse(name):
    rng = np.random.default_rng(1)
    table, wrong = claims.POPULATIONS[name](rng, 8), []
    for n in (10, 30, 100):
        for _ in range(40):
            drawn = rng.permuted(table[:, rng.integers(0, claims.QUESTIONS, n)], axis=0)
            wrong.append((statistics.worse_than(drawn) < 0.05).any())
    assert np.mean(wrong) <= 0.05 + error(0.05, len(wrong))


def test_a_route_worse_by_the_margin_is_rarely_equivalent():
    for n, found in claims.equivalent(100, np.random.default_rng(2)).items():
        assert found["worst case, exact"] <= 0.06, n
        assert found["ordinary"] <= 0.05 + error(0.05, 400), n


@pytest.mark.parametrize("name", claims.POPULATIONS)
def test_what_is_shipped_is_rarely_worse_than_the_margin(name):
    rng = np.random.default_rng(3)
    table, wrong = claims.POPULATIONS[name](rng, 8)[:, :4000], []
    truth = table.mean(axis=1)
    for n in (30, 60, 100, 200):
        for _ in range(40):
            order = rng.permutation(8)
            chosen = claims.shipped(table[order][:, rng.integers(0, 4000, n)])
            wrong.append(chosen is not None and truth.max() - truth[order][chosen] > claims.MARGIN)
    assert np.mean(wrong) <= 0.05 + error(0.05, len(wrong))


def test_two_samples_of_one_population_rarely_disagree():
    found = claims.disagreement(60, np.random.default_rng(4))
    assert max(found.values()) <= 0.05 + error(0.05, 60)
