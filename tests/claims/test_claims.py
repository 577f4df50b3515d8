"""What verdicts promise, by simulation with known truth: the quick part of `make test-claims`."""

import numpy as np
import pytest

from bench import claims, judged
from core.evaluation import statistics
from core.evaluation.verdict import MARGIN, by_values

ORDINARY = ("ordinary", "zero or one", "mostly tied", "ceiling", "all tied", "near copies")


@pytest.fixture(autouse=True)
def _few_flips(monkeypatch):
    monkeypatch.setattr(statistics, "FLIPS", claims.FLIPS)
    monkeypatch.setattr(claims, "shipped_before", lambda *_: 0)  # no test asks for the rule of before


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
            wrong.append(bool(claims.behind(drawn)))
    assert np.mean(wrong) <= 0.05 + error(0.05, len(wrong))


def test_a_route_that_is_far_behind_is_shown_worse():
    """The share above is not small because nothing is ever shown."""
    table = claims.ordinary(np.random.default_rng(1), 8, spread=0.4)
    assert "7" in claims.behind(table[:, :100])


def test_a_route_worse_by_the_margin_is_rarely_equivalent():
    for n, found in claims.equivalent(100, np.random.default_rng(2)).items():
        assert found["worst case, exact"] <= 0.06, n
        assert found["ordinary"] <= 0.05 + error(0.05, 400), n


@pytest.mark.parametrize("name", ORDINARY)
def test_what_is_shipped_is_rarely_worse_than_the_margin(name):
    rng = np.random.default_rng(3)
    tables = [claims.POPULATIONS[name](rng, routes)[:, :4000] for routes in (2, 8, 60)]
    found = claims.drawn_from(name, tables, 24, rng)
    wrong = np.mean([by["wrong"] for by in found.values()])
    assert wrong <= 0.05 + error(0.05, 24 * len(found))
    assert found[f"{name}, n=10"]["undecided"] == 1
    assert found[f"{name}, n=400"]["undecided"] < 1


def test_the_simulated_rule_is_the_one_by_values():
    rng = np.random.default_rng(5)
    decisions = set()
    for name, make in claims.POPULATIONS.items():
        for n in (10, 60, 200):
            table = rng.permutation(make(rng, 5)[:, :n])
            values = {str(row): dict(enumerate(map(float, of))) for row, of in enumerate(table)}
            whole, quick = by_values(claims.options(table), values), claims.decided(table)
            assert (whole.decision, whole.chosen) == (quick.decision, quick.chosen), name
            assert whole.margin == MARGIN
            decisions.add(whole.decision)
    assert decisions == {"ship", "equivalent", "undecided"}


def test_three_tied_questions_ship_nothing():
    found = claims.shares([np.full((routes, 3), 0.5) for routes in (2, 8, 60)], np.random.default_rng(6))
    assert found["now"] == 0


def test_two_samples_of_one_population_rarely_disagree():
    found = claims.disagreement(40, np.random.default_rng(4))
    assert max(found.values()) <= 0.05 + error(0.05, 40)


@pytest.mark.parametrize("auc", [0.5, 0.9])
def test_a_judge_and_drawn_questions_narrow_intervals_and_ship_no_worse_routes(auc):
    rng = np.random.default_rng(8)
    found = judged.draws(judged.synthetic(rng, 300), 40, auc, 100, rng)
    for way, row in found.items():
        assert row["ships wrongly"] <= 0.05 + error(0.05, 100), way
        assert row["least covered"] >= 0.93 - error(0.93, 100), way
    assert found["judge"]["widest of labels"] <= 1.02
    assert found["drawn"]["of labels"] < 0.95
    assert (found["judge"]["of labels"] < 0.95) == (auc > 0.5)
