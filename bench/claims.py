"""How often the statements of verdicts hold, by simulation with known truth: `make test-claims`.

A population is a table of routes and many questions, so its means are the truth; a sample draws questions
from it. Real sets of questions are halved at random: one half decides, the other tells how well. `before` is
the rule in use until November 2026: percentile bootstrap intervals, and shipping the cheapest route that
Holm's correction does not show to be worse than the observed best.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import core.api
from core.analysis.metrics import HEADLINE
from core.domain import settings
from core.evaluation import statistics
from core.evaluation.comparison import Difference, from_summary
from core.evaluation.costs import Cost, cheapest_first
from core.evaluation.questions import agreement
from core.evaluation.verdict import MARGIN, Option, Verdict, by_values, decide, measured_cost

Table = NDArray[np.float64]
Figures = dict[str, Any]
SIZES = (5, 10, 30, 60, 100, 200, 400)
QUESTIONS = 20_000  # of a population
FLIPS = 499  # in a simulated test; the program makes more
HALVES = 200  # of a real set
# Routes that ask no model for text, on sets whose passages are embedded in seconds.
ROUTES = (
    "bm25",
    "prf_rm3",
    "dense",
    "mmr",
    "adaptive_k",
    "dedupe",
    "hybrid_rrf",
    "hybrid_linear",
)
SETS = ("support", "hotpotqa-100", "clapnq-dev", "anthropic-contextual", "mtrag-human-subset")
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


def failing(rng: np.random.Generator, routes: int) -> Table:
    """All but the last route fail wholly on a little more than the margin, each on questions of its own."""
    table = (rng.random((routes, QUESTIONS)) >= MARGIN * 1.1).astype(float)
    table[-1] = 1.0
    return table


POPULATIONS: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "ordinary": ordinary,
    "zero or one": zero_one,
    "mostly tied": tied,
    "ceiling": ceiling,
    "all tied": all_tied,
    "near copies": copies,
    "fails wholly": failing,
}


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
    return statistics.mean_intervals(rows, low, 1.0, statistics.LEVEL)


def percentile(row: Table, rng: np.random.Generator) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean."""
    times = rng.multinomial(len(row), np.full(len(row), 1 / len(row)), size=400)
    low, high = np.quantile(times @ row / len(row), (0.025, 0.975))
    return float(low), float(high)


def options(table: Table) -> list[Option]:
    """Return the rows as routes; each costs twice as much as the one before it."""
    return [
        Option(str(row), float(values.mean()), values.size, "passes", Cost(2.0**row, 0.0, None))
        for row, values in enumerate(table)
    ]


def decided(table: Table) -> Verdict:
    """Decide by the program's rule, without the tests that show routes to be worse."""
    n, means, covariance = table.shape[1], table.mean(axis=1), np.atleast_2d(np.cov(table))
    delta = means[:, None] - means
    variance = covariance.diagonal()[:, None] + covariance.diagonal() - 2 * covariance
    sd = np.sqrt(np.maximum(variance, 0.0))

    def pair(route: str, other: str) -> Difference | None:
        at = int(route), int(other)
        return from_summary(route, other, n, float(delta[at]), float(sd[at]))

    return decide(options(table), pair)


def shipped(table: Table) -> int | None:
    """Return the row that the program ships; None if it is undecided."""
    chosen = decided(table).chosen
    return None if chosen is None else int(chosen)


def shipped_before(table: Table, rng: np.random.Generator) -> int:
    """Return the first row that is not shown to be worse than the observed best, by 1,999 sign flips."""
    best = int(table.mean(axis=1).argmax())
    apart = table[:best] - table[best]
    flipped = np.abs(apart @ (rng.integers(0, 2, (table.shape[1], 1999)) * 2.0 - 1))
    as_far = (flipped >= np.abs(apart.sum(axis=1))[:, None] - statistics.ROUNDING).sum(axis=1)
    p = statistics.holm({row: (int(count) + 1) / 2000 for row, count in enumerate(as_far)})
    return next((row for row in range(best) if p[row] >= statistics.ALPHA), best)


def behind(table: Table) -> tuple[str, ...]:
    """Return the rows that the program shows to be worse than the best so far."""
    values = {str(row): {str(q): float(one) for q, one in enumerate(of)} for row, of in enumerate(table)}
    return by_values(options(table), values).behind


def shown_worse(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often equal routes have one that is shown to be worse: the scores of each question are
    dealt to the routes at random, so that all means are equal.
    """
    found: Figures = {}
    for name, make in POPULATIONS.items():
        for routes, times in ((2, repeats), (16, repeats), (60, repeats // 2)):
            table, wrong, family = make(rng, routes), [], []
            for n in (30,) if routes == 60 else (10, 30, 100):
                for _ in range(times):
                    drawn = rng.permuted(table[:, rng.integers(0, QUESTIONS, n)], axis=0)
                    wrong.append(bool(behind(drawn)))
                    if len(wrong) % 4 == 0:
                        others = {route: list(drawn[route] - drawn[0]) for route in range(1, routes)}
                        family.append(
                            any(
                                c.verdict != "no difference shown"
                                for c in statistics.compare(others).values()
                            )
                        )
            found[f"{name}, {routes} routes"] = {
                "worse than the best": share(wrong),
                "against the baseline": share(family),
                "of": [len(wrong), len(family)],
            }
    return found


def equivalent(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often a cheap route that is MARGIN worse is shipped or called equivalent; exact for one
    that fails wholly on that share of questions.
    """
    found: Figures = {}
    for n in (30, 60, 100, 200, 400):
        wrong = 0.0
        for failures in range(n):
            table = np.ones((2, n))
            table[0, :failures] = 0.0
            if shipped(table) == 0:
                wrong += stats.binom.pmf(failures, n, MARGIN)
        passed = []
        for _ in range(repeats * 4):
            best = np.full(n, 0.5)
            passed.append(shipped(np.stack([(best + rng.normal(-MARGIN, 0.15, n)).clip(0, 1), best])) == 0)
        found[str(n)] = {"worst case, exact": round(float(wrong), 3), "ordinary": share(passed)}
    return found


def ships(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure how often a route is shipped that is more than MARGIN worse than the best; costs are random."""
    found: Figures = {}
    for name, make in POPULATIONS.items():
        tables = [make(rng, routes)[:, :4000] for routes in (2, 4, 16, 60)]
        found |= drawn_from(name, tables, repeats, rng)
    return found


def failing_by_routes(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure the harshest case at the fewest questions that call routes equivalent, by the number of routes:
    the more fail independently, the more often one of them happens not to fail.
    """
    found: Figures = {}
    for routes in (2, 4, 16, 60):
        of = failing(rng, routes)[:, :4000]
        by = drawn_from("fails wholly", [of], repeats, rng, (statistics.least_for_equivalence(MARGIN),))
        found |= {f"{routes} routes, n={name.rsplit('=', 1)[1]}": row for name, row in by.items()}
    return found


def drawn_from(
    name: str, tables: Sequence[Table], repeats: int, rng: np.random.Generator, sizes: Sequence[int] = SIZES
) -> Figures:
    """Return what is shipped by samples of `tables`, each as often, by their size."""
    found: Figures = {}
    for n in sizes:
        outcomes = []
        for time in range(repeats):
            table = rng.permutation(tables[time % len(tables)])
            drawn = table[:, rng.integers(0, table.shape[1], n)]
            regret = table.mean(axis=1).max() - table.mean(axis=1)
            now, before = shipped(drawn), shipped_before(drawn, rng)
            outcomes.append((now is None, now is not None and above(regret[now]), above(regret[before])))
        undecided, wrong, wrong_before = np.array(outcomes).T
        found[f"{name}, n={n}"] = {
            "undecided": share(undecided),
            "wrong": share(wrong),
            "wrong before": share(wrong_before),
        }
    return found


def above(regret: float, margin: float = MARGIN) -> bool:
    """Return whether a regret is more than `margin`, and not only by rounding."""
    return regret > margin + 1e-9


def measured() -> dict[str, Table]:
    """Return the nDCG@10 of ROUTES by question on the sets at hand, the cheapest route first.

    Evaluations are kept in the home folder and taken up again by the next run.
    """
    here = os.environ.get("ROUTESCOPE_BENCH_DATA")
    folders = [Path(here)] if here else sorted(settings.PROJECT.glob("../*/data"))
    found = {}
    for name in SETS:
        at = next((folder / name for folder in folders if (folder / name / "corpus.jsonl").is_file()), None)
        if at is None and name != "support":
            sys.stderr.write(f"{name} is not beside the project (or below ROUTESCOPE_BENCH_DATA)\n")
            continue
        out = settings.current().home / "bench" / "claims" / name
        run = core.api.evaluate(at or name, ROUTES, split="all", baseline=ROUTES[0], out=out)
        costs = {route: measured_cost(run.outcomes, route) for route in ROUTES}
        values = {route: {q: row[HEADLINE] for q, row in run.values[route].items()} for route in ROUTES}
        questions = [q for q in values[ROUTES[0]] if all(q in by for by in values.values())]
        found[name] = np.array([[values[route][q] for q in questions] for route in cheapest_first(costs)])
    return found


def halves(repeats: int, rng: np.random.Generator) -> Figures:
    """Measure what random halves of real sets ship, by its regret on the other half; and samples of the sets,
    as if each were a population.
    """
    found: Figures = {}
    for name, table in measured().items():
        outcomes: dict[str, list[float | None]] = {"now": [], "before": []}
        for _ in range(HALVES):
            order = rng.permutation(table.shape[1])
            half, other = np.split(order, [len(order) // 2])
            means = table[:, other].mean(axis=1)
            now, before = shipped(table[:, half]), shipped_before(table[:, half], rng)
            outcomes["now"].append(None if now is None else float(means.max() - means[now]))
            outcomes["before"].append(float(means.max() - means[before]))
        found[f"{name}, halves of {table.shape[1]}"] = {
            rule: {
                "undecided": share([one is None for one in regrets]),
                "above .05": share([one is not None and above(one, 0.05) for one in regrets]),
                "above .02": share([one is not None and above(one, 0.02) for one in regrets]),
            }
            for rule, regrets in outcomes.items()
        }
        found |= drawn_from(name, [table], repeats, rng)
        if name == "support":
            tens = [table[:, rng.choice(table.shape[1], 10, replace=False)] for _ in range(HALVES)]
            found["ten questions of support, ships"] = shares(tens, rng)
    found["three tied questions, ships"] = shares([np.full((routes, 3), 0.5) for routes in (2, 8, 60)], rng)
    return found


def shares(tables: Sequence[Table], rng: np.random.Generator) -> Figures:
    """Return how often anything is shipped, and a route other than the observed best."""
    best = [int(table.mean(axis=1).argmax()) for table in tables]
    now = [shipped(table) for table in tables]
    before = [shipped_before(table, rng) for table in tables]
    return {
        "now": share([one is not None for one in now]),
        "before": 1.0,
        "before, not the observed best": share([one != top for one, top in zip(before, best, strict=True)]),
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
    "shipped with a regret above the margin": ships,
    "equal routes, one shown worse or different": shown_worse,
    "many routes that fail wholly": failing_by_routes,
    "coverage of 95% intervals": coverage,
    "called equivalent though worse by the margin": equivalent,
    "one population, the sets disagree": disagreement,
    "real sets": halves,
}


def run(name: str, repeats: int) -> Figures:
    """Return the figures of one claim, always by the same random numbers."""
    statistics.FLIPS = FLIPS
    return CLAIMS[name](repeats, np.random.default_rng(7))


def main(repeats: int = 200) -> None:
    """Write the figures to bench/claims.json."""
    found: Figures = {"repeats": repeats, "halves": HALVES, "flips": FLIPS}
    with ProcessPoolExecutor() as pool:
        running = {name: pool.submit(run, name, repeats) for name in CLAIMS}
        for name, one in running.items():
            found[name] = one.result()
            sys.stderr.write(f"{name}: done\n")
            OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
