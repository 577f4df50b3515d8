"""What a corrected judge and drawn questions are worth to a verdict, with the labels hidden:
`python -m bench.judged [EVALUATION ...]`.

Each saved evaluation is a population of questions, so that its means are the truth. A draw takes 200 of them,
of which some are labelled: evenly, or as `labels draw` orders them. A judge grades every passage with a given
AUC. Verdicts are the program's own, on its corrected differences.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, stdtrit

from core.analysis.metrics import HEADLINE
from core.domain import settings
from core.evaluation import experiment_store
from core.evaluation.comparison import Difference
from core.evaluation.costs import Cost
from core.evaluation.figures import CorrectedMean
from core.evaluation.judge.correction import corrected
from core.evaluation.labels.draw import DISCOUNTS, FLOOR, TOP, largest_difference
from core.evaluation.verdict import MARGIN, Option, decide

Table = NDArray[np.float64]
ASKED = 200  # questions of a draw
LABELS, AUCS = (20, 40, 80), (0.5, 0.8, 0.95)
ROUTES = ("bm25", "hybrid_rrf", "hybrid_linear", "dense")
WAYS = ("labels", "judge", "drawn", "drawn and judge")


@dataclass(frozen=True)
class Population:
    """Questions of known truth: discounts [questions, passages, routes], whether passages are relevant
    [questions, passages], nDCG@10 [questions, routes], and the largest difference that labels could show
    [questions, routes, routes].
    """

    discounts: Table
    relevant: NDArray[np.bool_]
    values: Table
    bounds: Table

    def judged(self, auc: float, rng: np.random.Generator) -> Table:
        """Return nDCG@10 by a judge of this AUC, which calls as many passages relevant as are."""
        score = rng.normal(0, 1, self.relevant.shape) + np.sqrt(2) * ndtri(auc) * self.relevant
        real = self.discounts.any(axis=2)
        return ndcg(
            self.discounts, real & (score >= np.quantile(score[real], 1 - self.relevant[real].mean()))
        )


def ndcg(discounts: Table, relevant: NDArray[np.bool_]) -> Table:
    """Return nDCG@10 [questions, routes], 0 if nothing is relevant."""
    ideal = np.concatenate([[np.inf], DISCOUNTS.cumsum()])[np.minimum(relevant.sum(axis=1), TOP)]
    found: Table = (discounts * relevant[:, :, None]).sum(axis=1) / ideal[:, None]
    return found


def population(
    rankings: Sequence[Sequence[Sequence[str]]], good: Sequence[set[str]], values: Table | None = None
) -> Population:
    """Return a population of `rankings`, question by question, each of every route; `good`: the relevant
    passages; `values`: nDCG@10, None to compute it.
    """
    pools = [list(dict.fromkeys(id for ids in by for id in ids[:TOP])) for by in rankings]
    discounts = np.zeros((len(pools), max(map(len, pools)), len(rankings[0])))
    relevant = np.zeros(discounts.shape[:2], bool)
    for q, (pool, by) in enumerate(zip(pools, rankings, strict=True)):
        relevant[q, : len(pool)] = [id in good[q] for id in pool]
        for route, ids in enumerate(by):
            for rank, id in enumerate(ids[:TOP]):
                discounts[q, pool.index(id), route] = DISCOUNTS[rank]
    bounds = np.array([[[largest_difference(a, b) for b in by] for a in by] for by in rankings])
    return Population(discounts, relevant, ndcg(discounts, relevant) if values is None else values, bounds)


def synthetic(rng: np.random.Generator, questions: int = 600) -> Population:
    """Three routes that score thirty passages with some noise in common, one of them worse."""
    relevant = rng.random((questions, 30)) < 0.06
    relevant[:, 0] = True
    score = relevant * 1.5 + rng.normal(0, 1, relevant.shape)
    noisy = [score + rng.normal(0, noise, relevant.shape) for noise in (0.5, 0.6, 1.5)]
    rankings = [np.argsort(-one, axis=1)[:, :TOP] for one in noisy]
    lists = [[[str(id) for id in of[q]] for of in rankings] for q in range(questions)]
    good = [{str(id) for id in np.flatnonzero(row)} for row in relevant]
    return population(lists, good)


def saved(folder: Path) -> Population:
    """Return a saved evaluation as a population."""
    found = experiment_store.opened(folder)
    routes = [route for route in ROUTES if route in found.routes]
    set_ = found.labelled
    asked = [
        q
        for q, by in found.outcomes.items()
        if set_.labelled(q) and all(by[r].status == "ok" for r in routes)
    ]
    rankings = [[[id for id, _ in found.outcomes[q][route].hits[:TOP]] for route in routes] for q in asked]
    values = np.array([[found.values[route][q][HEADLINE] for route in routes] for q in asked])
    return population(rankings, [set(set_.relevant(q)) for q in asked], values)


@dataclass(frozen=True)
class Labelled:
    """One way to label a draw: which questions, by which weights, and with which judge."""

    ids: NDArray[np.int64]
    weights: Table  # [questions]
    judge: Table | None  # nDCG@10 by its grades [questions, routes]

    def mean(self, values: Table, route: int) -> CorrectedMean:
        """Return the estimated mean of a route."""
        by = np.zeros(len(values)) if self.judge is None else self.judge[:, route]
        return self._estimate(values[:, route], by)

    def difference(self, values: Table, bounds: Table, one: int, other: int) -> CorrectedMean:
        """Return the estimated difference of two routes."""
        by = np.zeros(len(values)) if self.judge is None else self.judge[:, one] - self.judge[:, other]
        even = bool((self.weights == 1).all())
        most = 1.0 if even else float((self.weights * bounds[:, one, other]).max())
        return self._estimate(values[:, one] - values[:, other], by, most=most, paired=True)

    def _estimate(self, values: Table, by: Table, **how: Any) -> CorrectedMean:
        every = () if self.judge is None else by
        found = corrected(values[self.ids], by[self.ids], every, self.weights[self.ids], **how)
        assert found is not None
        return found


def passages(
    part: Population,
    labels: int,
    auc: float,
    rng: np.random.Generator,
    *,
    calls: float = 1.0,
    known_ideal: bool = False,
) -> Table:
    """Return nDCG@10 of a draw, estimated from single passages [questions, routes].

    As many grades as `labels` whole questions take are drawn with known chances, by how uncertain a judge of
    this AUC is of each passage times how far apart the routes show it. DCG is corrected by one over the
    chance. The ideal DCG is not linear in the grades: it follows from the grades drawn, and elsewhere from
    those of the judge, which calls `calls` times as many passages relevant as are (0: as many as the grades
    drawn suggest); or it is known.
    """
    real, shift = part.discounts.any(axis=2), np.sqrt(2) * ndtri(auc)
    score = rng.normal(0, 1, part.relevant.shape) + shift * part.relevant
    rate = part.relevant[real].mean()
    likely = expit(np.log(rate / (1 - rate)) + shift * score - shift**2 / 2)
    size = np.where(real, np.sqrt(likely * (1 - likely)) * part.discounts.std(axis=2), 0.0)
    size += np.where(real, 0.05 * size[real].mean(), 0.0)
    keys = size / rng.uniform(1e-9, 1, size.shape)
    limit = np.sort(keys, axis=None)[::-1][int(labels * real.sum() / ASKED)]
    drawn, chance = keys > limit, np.where(real, np.minimum(1.0, size / limit), 1.0)
    grades = likely + np.where(drawn, (part.relevant - likely) / chance, 0.0)
    share = calls * rate if calls else grades[real].mean()
    called = real & (score >= np.quantile(score[real], float(np.clip(1 - share, 0, 1))))
    count = np.where(drawn | known_ideal, part.relevant, called).sum(axis=1)
    ideal = np.concatenate([DISCOUNTS[:1], DISCOUNTS.cumsum()])[np.minimum(count, TOP)]
    found: Table = (part.discounts * np.where(real, grades, 0.0)[:, :, None]).sum(axis=1) / ideal[:, None]
    return found


def of_passages(
    of: Population, labels: int, auc: float, repeats: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the width, coverage and least coverage of differences, and their largest bias, from passages
    drawn singly (see `passages`): by a judge that calls as many relevant as are, three times as many,
    or as many as the grades drawn suggest, and if the ideal were known.
    """
    kinds: dict[str, Any] = {
        "as many": {},
        "3 times as many": {"calls": 3.0},
        "as drawn": {"calls": 0.0},
        "ideal known": {"known_ideal": True},
    }
    truth = ndcg(of.discounts, of.relevant).mean(axis=0)  # grades are yes or no here
    pairs, table = list(combinations(range(len(truth)), 2)), {}
    for kind, how in kinds.items():
        rows = []
        for _ in range(repeats):
            at = rng.integers(0, len(of.values), ASKED)
            part = Population(of.discounts[at], of.relevant[at], of.values[at], of.bounds[at])
            values = passages(part, labels, auc, rng, **how)
            for a, b in pairs:
                apart = values[:, a] - values[:, b]
                half = float(stdtrit(ASKED - 1, 0.975)) * apart.std(ddof=1) / np.sqrt(ASKED)
                rows.append((2 * half, apart.mean() - (truth[a] - truth[b]), half))
        widths, errors, halves = np.array(rows).T.reshape(3, repeats, len(pairs))
        inside = (np.abs(errors) <= halves + 1e-9).mean(axis=0)
        table[f"passages, {kind}"] = {
            "width": float(widths.mean()),
            "covered": float(inside.mean()),
            "least covered": float(inside.min()),
            "largest bias": float(np.abs(errors.mean(axis=0)).max()),
        }
    return table


def ways(part: Population, labels: int, judge: Table, rng: np.random.Generator) -> dict[str, Labelled]:
    """Return the ways to label a draw, in order: evenly and drawn, each without and with a judge."""
    sizes = np.maximum(FLOOR, part.bounds.max(axis=(1, 2)))
    keys = sizes / rng.random(ASKED)
    order = np.argsort(-keys)
    weights = labels / ASKED * np.maximum(1.0, keys[order[labels]] / sizes)
    even = rng.permutation(ASKED)[:labels], np.ones(ASKED)
    drawn = order[:labels], weights
    known = [Labelled(*how, by) for how in (even, drawn) for by in (None, judge)]
    return dict(zip(WAYS, known, strict=True))


def draws(of: Population, labels: int, auc: float, repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return by way of labelling: the mean width of differences, the share of them that cover the truth, the
    least coverage of a pair, and the shares of verdicts that ship, and that ship a route more than MARGIN
    worse than the best.
    """
    truth, routes = of.values.mean(axis=0), of.values.shape[1]
    pairs = list(combinations(range(routes), 2))
    rows: dict[str, list[Any]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        at = rng.integers(0, len(of.values), ASKED)
        part = Population(of.discounts[at], of.relevant[at], of.values[at], of.bounds[at])
        for way, one in ways(part, labels, part.judged(auc, rng), rng).items():
            found = {pair: one.difference(part.values, part.bounds, *pair) for pair in pairs}
            means = [one.mean(part.values, route).mean for route in range(routes)]
            chosen = _chosen(found, means)
            regret = 0.0 if chosen is None else float(truth.max() - truth[chosen])
            inside = [
                each.ci95[0] - 1e-9 <= truth[a] - truth[b] <= each.ci95[1] + 1e-9
                for (a, b), each in found.items()
            ]
            widths = [each.ci95[1] - each.ci95[0] for each in found.values()]
            equal = fmean(each.equal_to for each in found.values())
            rows[way].append((widths, inside, equal, chosen is not None, regret > MARGIN + 1e-9))
    table = {way: [np.array(column) for column in zip(*found, strict=True)] for way, found in rows.items()}
    base = table["labels"][0]
    return {
        way: {
            "width": float(widths.mean()),
            "of labels": float(widths.mean() / base.mean()),
            **({"widest of labels": float((widths / base).max())} if way == "judge" else {}),
            "covered": float(inside.mean()),
            "least covered": float(inside.mean(axis=0).min()),
            "equal to": float(equal.mean()),
            "ships": float(ships.mean()),
            "ships wrongly": float(wrong.mean()),
        }
        for way, (widths, inside, equal, ships, wrong) in table.items()
    }


def _chosen(found: Mapping[tuple[int, int], CorrectedMean], means: Sequence[float]) -> int | None:
    """Return the route that ships; each costs twice as much as the one before it."""
    known: dict[tuple[str, str], Difference] = {}
    for pair, one in found.items():
        (a, b), (low, high) = map(str, pair), one.ci95
        known[a, b] = Difference(a, b, one.labels, one.mean, low, high, one.sd)
        known[b, a] = Difference(b, a, one.labels, -one.mean, -high, -low, one.sd)
    labels = next(iter(found.values())).labels
    options = [
        Option(str(route), mean, labels, "passes", Cost(2.0**route, 0.0, None))
        for route, mean in enumerate(means)
    ]
    chosen = decide(options, lambda a, b: known[a, b]).chosen
    return None if chosen is None else int(chosen)


def main(names: Sequence[str], repeats: int = 1000) -> None:
    """Print a line for each population, number of labels, judge and way of labelling."""
    for name in names or ("synthetic",):
        rng = np.random.default_rng(7)
        folder = Path(name) if Path(name).is_dir() else experiment_store.place(settings.current(), name)
        of = synthetic(rng) if name == "synthetic" else saved(folder)
        for labels in LABELS:
            for auc in AUCS:
                rows = draws(of, labels, auc, repeats, rng) | of_passages(of, labels, auc, repeats, rng)
                for way, row in rows.items():
                    figures = "  ".join(
                        f"{key} {value:.3f}" for key, value in row.items() if value is not None
                    )
                    sys.stdout.write(f"{Path(name).name} {labels} labels, AUC {auc}, {way}: {figures}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
