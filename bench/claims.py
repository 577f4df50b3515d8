"""How often the statements of verdicts hold, by simulation with known truth: `make test-claims`.

A population is a table of routes and many questions, so its means are the truth; a sample draws questions
from it. `before` is the rule in use until November 2026: percentile bootstrap intervals, and shipping the
cheapest route that Holm's correction does not show to be worse than the observed best.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.evaluation import statistics
from core.evaluation.questions import agreement

Table = NDArray[np.float64]
Figures = dict[str, Any]
SIZES = (5, 10, 30, 60, 100, 200, 400)
MARGIN = 0.05
LEAST = 25  # questions to ship a route
QUESTIONS = 20_000  # of a population
FLIPS = 499  # in a simulated test; the program makes more
OUT = Path(__file__).with_name("claims.json")


def ordinary(rng: np.random.Generator, routes: int, spread: float = 0.1) -> Table:
    """Scores between 0 and 1 that share how hard a question is."""
    hard = rng.normal(0.55, 0.25, QUESTIONS)
    apart = np.linspace(0, -spread, routes)[:, None]
    return np.clip(hard + apart + rng.normal(0, 0.15, (routes, QUESTIONS)), 0, 1)


def zero_one(rng: np.random.Generator, routes: int) -> Table:
    """Success or failure."""
    chance = np.clip(rng.normal(0.6, 0.2, QUESTIONS) - np.linspace(0, 0.1, routes)[:, None], 0, 1)
    return (rng.random((routes, QUESTIONS)) < chance).astype(float)


def tied(rng: np.random.Generator, routes: int) -> Table:
    """Routes that differ on one question in ten."""
    same = rng.random(QUESTIONS) < 0.9
    return np.where(same, rng.random(QUESTIONS), ordinary(rng, routes))


def ceiling(rng: np.random.Generator, routes: int) -> Table:
    """Nearly every score is 1."""
    return np.where(rng.random((routes, QUESTIONS)) < 0.96, 1.0, rng.random((routes, QUESTIONS)))


def all_tied(rng: np.random.Generator, routes: int) -> Table:
    """The same score of every route."""
    return np.tile(rng.random(QUESTIONS), (routes, 1))


def copies(rng: np.random.Generator, routes: int) -> Table:
    """All but two routes are near copies of the first."""
    table = ordinary(rng, routes)
    changed = rng.random((routes, QUESTIONS)) < 0.03
    changed[[0, -1]] = True
    return np.where(changed, table, table[0])


POPULATIONS: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "ordinary": ordinary, "zero or one": zero_one, "mostly tied": tied, "ceiling": ceiling,
    "all tied": all_tied, "near copies": copies,
}  # fmt: skip


def coverage(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure the coverage of intervals of means and differences, now and before."""
    found: Figures = {}
    for name, make in POPULATIONS.items():
        table = make(rng, 2)
        for what, column, low in (("mean", table[0], 0.0), ("difference", table[0] - table[1], -1.0)):
            truth, now, before = column.mean(), {}, {}
            for n in SIZES:
                drawn = column[rng.integers(0, QUESTIONS, (repeats * 10, n))]
                ends = intervals(drawn, low)
                now[str(n)] = share((ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1]))
                old = np.array([percentile(row, rng) for row in drawn[:repeats]])
                before[str(n)] = share((old[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= old[:, 1]))
            found[f"{name}, {what}"] = {"now": now, "before": before}
    return found


def intervals(rows: Table, low: float) -> Table:
    """Return the interval of each row, shape (rows, 2)."""
    return np.array([ends for ends in statistics.mean_intervals(rows.tolist(), low, 1.0) if ends])


def percentile(row: Table, rng: np.random.Generator) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean."""
    times = rng.multinomial(len(row), np.full(len(row), 1 / len(row)), size=400)
    low, high = np.quantile(times @ row / len(row), (0.025, 0.975))
    return float(low), float(high)


def shown_worse(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often equal routes have one that is shown to be worse: the scores of each question are
    dealt to the routes at random, so that all means are equal.
    """
    found: Figures = {}
    for name, make in POPULATIONS.items():
        for routes in (2, 16, 60):
            table, wrong, family = make(rng, routes), [], []
            for n in (30, 100) if routes == 60 else (10, 30, 100):
                for _ in range(max(4, repeats // 3)):
                    drawn = rng.permuted(table[:, rng.integers(0, QUESTIONS, n)], axis=0)
                    wrong.append((statistics.worse_than(drawn) < statistics.ALPHA).any())
                    others = {route: list(drawn[route] - drawn[0]) for route in range(1, routes)}
                    family.append(any(c.verdict != "no difference shown"
                                      for c in statistics.compare(others).values()))  # fmt: skip
            found[f"{name}, {routes} routes"] = {
                "worse than another": share(wrong), "against the baseline": share(family), "of": len(wrong),
            }  # fmt: skip
    return found


def equivalent(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often a route that is MARGIN worse is called equivalent; exact for one that fails wholly on
    that share of questions.
    """
    found: Figures = {}
    least = statistics.least_for_equivalence(MARGIN)
    for n in (60, 100, 200, 400):
        wrong = 0.0
        for failures in range(n):
            ends = statistics.difference_interval([-1.0] * failures + [0.0] * (n - failures))
            if n < least or ends is None or ends[0] <= -MARGIN:
                break
            wrong += stats.binom.pmf(failures, n, MARGIN)
        rows = rng.normal(-MARGIN, 0.15, (repeats * 4, n)).clip(-1, 1)
        ends_of = intervals(rows, -1.0)
        found[str(n)] = {"worst case, exact": round(float(wrong), 3),
                         "ordinary": share((ends_of[:, 0] > -MARGIN) & (ends_of[:, 1] < MARGIN))}  # fmt: skip
    return found


def shipped(table: Table) -> int | None:
    """Return the cheapest route (the order of rows) whose interval against every other is above -MARGIN."""
    if table.shape[1] < LEAST:
        return None
    low = statistics.pair_intervals(table)[:, :, 0]
    np.fill_diagonal(low, 1.0)
    passing = np.flatnonzero(low.min(axis=1) > -MARGIN)
    return int(passing[0]) if len(passing) else None


def shipped_before(table: Table) -> int:
    """Return the cheapest route that is not shown to be worse than the observed best."""
    best = int(table.mean(axis=1).argmax())
    p = statistics.holm({one: statistics.sign_flip_p(list(table[one] - table[best])) for one in range(best)})
    return next((one for one in range(best) if p[one] >= statistics.ALPHA), best)


def ships(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often a route is shipped that is more than MARGIN worse than the best; costs are random."""
    found: Figures = {}
    for name, make in POPULATIONS.items():
        tables = {routes: make(rng, routes)[:, :4000] for routes in (4, 8, 16)}
        for n in (30, 60, 100, 200):
            outcomes: list[tuple[bool, bool, bool]] = []
            for _ in range(repeats):
                table = rng.permutation(tables[int(rng.choice([4, 8, 16]))])
                truth, drawn = table.mean(axis=1), table[:, rng.integers(0, 4000, n)]
                now, before = shipped(drawn), shipped_before(drawn)
                regret = truth.max() - truth
                outcomes.append(
                    (now is None, now is not None and regret[now] > MARGIN, regret[before] > MARGIN)
                )
            undecided, wrong, wrong_before = np.array(outcomes).T
            found[f"{name}, n={n}"] = {
                "undecided": share(undecided), "wrong": share(wrong), "wrong before": share(wrong_before),
            }  # fmt: skip
    return found


def shares(repeats: int, rng: np.random.Generator) -> Figures:
    """Compare the stated share of other data that choose the same with what other data choose, by bins."""
    stated, seen = [], []
    for _ in range(repeats * 4):
        table = ordinary(rng, 4, float(rng.choice([0.0, 0.03, 0.1])))[:, :4000]
        n = int(rng.choice([30, 100, 200]))
        drawn = table[:, rng.integers(0, 4000, n)]
        said = statistics.share_chosen(partial(statistics.highest, drawn), n)
        best = int(drawn.mean(axis=1).argmax())
        others = [table[:, rng.integers(0, 4000, n)].mean(axis=1).argmax() == best for _ in range(60)]
        stated.append(said[best])
        seen.append(np.mean(others))
    bins = np.digitize(stated, [0.4, 0.6, 0.8])
    return {
        f"{np.array(stated)[bins == one].mean():.2f}": round(float(np.array(seen)[bins == one].mean()), 2)
        for one in range(4)
        if (bins == one).sum() >= 5
    }


def disagreement(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often two samples of one population are said to disagree."""
    found: Figures = {}
    for routes, n in ((4, 25), (8, 100), (20, 50)):
        table = zero_one(rng, routes)
        wrong = []
        for _ in range(repeats):
            one, other = (table[:, rng.integers(0, QUESTIONS, n)] for _ in range(2))
            wrong.append(agreement.likeness(one, other)[2])
        found[f"{routes} routes, n={n}"] = share(wrong)
    return found


def share(found: Any) -> float:
    """Return the share of what is true, in three digits."""
    return round(float(np.mean(found)), 3)


CLAIMS: dict[str, Callable[[int, np.random.Generator], Figures]] = {
    "coverage of 95% intervals": coverage,
    "equal routes, one shown worse or different": shown_worse,
    "called equivalent though worse by the margin": equivalent,
    "shipped with a regret above the margin": ships,
    "stated share that choose the same: seen": shares,
    "one population, the sets disagree": disagreement,
}


def main(repeats: int = 200) -> None:
    """Write the figures to bench/claims.json."""
    statistics.FLIPS = FLIPS
    found: Figures = {"repeats": repeats}
    for name, claim in CLAIMS.items():
        found[name] = claim(repeats, np.random.default_rng(7))
        sys.stderr.write(f"{name}: done\n")
        OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
