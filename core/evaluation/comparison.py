"""Means over questions, differences between routes, and the questions on which they differ. A question to
which a metric does not apply is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from core.analysis.rank_overlap import jaccard
from core.evaluation import effects, statistics
from core.evaluation.effects import SAME
from core.evaluation.statistics import Key

Row = Mapping[str, float | None]  # metric -> value for one question, None if it does not apply
ByQuestion = Mapping[str, Row]
ByRoute = Mapping[str, ByQuestion]  # route -> question -> metric -> value
NOBODY: Mapping[str, str] = {}


def compared(
    values: ByRoute,
    baseline: str,
    metrics: Sequence[str],
    of: Sequence[str],
    intervals: Sequence[str],
    same: Mapping[str, str] = NOBODY,
) -> dict[str, dict[str, Any]]:
    """Compute each route's means and, in the metrics `of`, its differences from `baseline` (see `against`).

    `same`: routes that are equal to another (see core.evaluation.equal_routes.standing_for).
    """
    table = means_of(values, metrics, intervals)
    for route, found in against(values, baseline, of, same).items():
        table[route]["vs_baseline"] = found
    return table


def against(
    values: ByRoute, baseline: str, metrics: Sequence[str], same: Mapping[str, str] = NOBODY
) -> dict[str, dict[str, dict[str, Any]]]:
    """Compare the other routes with `baseline`: route -> metric -> figures of core.evaluation.effects.family.

    Each metric is a family of its own, because a reader looks at the routes in one metric. A route of `same`
    is not tested again: it takes the figures of the route it is equal to. A metric without a question in
    common is left out.
    """
    others = [route for route in values if route != baseline]
    found = {
        name: distinct_family(
            {route: differences(values, route, baseline, name) for route in others},
            {route: same[route] for route in others if route in same},
        )
        for name in metrics
    }
    return {route: {name: found[name][route] for name in metrics if route in found[name]} for route in others}


def distinct_family(
    columns: Mapping[Key, Sequence[float]], same: Mapping[Key, Key]
) -> dict[Key, dict[str, Any]]:
    """`effects.family` of what is tested once: a key of `same` takes the figures of the key it stands for.
    One that is equal to the baseline itself, which has no key, has no difference to test and is a family
    alone.
    """
    found = effects.family({key: column for key, column in columns.items() if key not in same})
    taken = {key: found[other] for key, other in same.items() if other in found and key in columns}
    alone = {key: columns[key] for key in same if key in columns and same[key] not in columns}
    return found | taken | effects.family(alone)


def means_of(
    values: Mapping[Key, ByQuestion], metrics: Sequence[str], intervals: Sequence[str]
) -> dict[Key, dict[str, Any]]:
    """For each key the mean of each metric over the questions it applies to (None without any), "n"
    questions, and under "ci95" the intervals of those in `intervals`.
    """
    columns = {(key, name): _column(by, name) for key, by in values.items() for name in metrics}
    wanted = [(key, name) for key, name in columns if name in intervals]
    ends = dict(zip(wanted, map(statistics.interval, (columns[one] for one in wanted)), strict=True))
    return {
        key: {
            **{name: fmean(columns[key, name]) if columns[key, name] else None for name in metrics},
            "n": len(by),
            "ci95": {
                name: list(pair) if (pair := ends[key, name]) else None
                for name in metrics
                if name in intervals
            },
        }
        for key, by in values.items()
    }


def counted(values: ByQuestion, metrics: Sequence[str]) -> dict[str, int]:
    """Return the number of questions that the mean of each metric is over."""
    return {name: len(_column(values, name)) for name in metrics}


def differences(values: Mapping[Key, ByQuestion], route: Key, baseline: Key, metric: str) -> list[float]:
    """Return `route` minus `baseline` at each question for which both have a value."""
    return list(by_question(values, route, baseline, metric).values())


def by_question(values: Mapping[Key, ByQuestion], route: Key, baseline: Key, metric: str) -> dict[str, float]:
    """Return `differences` by question, in the baseline's order."""
    mine = values.get(route, {})
    return {
        question: a - b
        for question, row in values.get(baseline, {}).items()
        if question in mine
        and (a := mine[question].get(metric)) is not None
        and (b := row.get(metric)) is not None
    }


def _column(values: ByQuestion, name: str) -> list[float]:
    return [value for one in values.values() if (value := one.get(name)) is not None]


TOP = 10  # passages compared of each ranking


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The difference between routes on one question. `spread`: the best value of a metric minus the worst,
    None if fewer than two routes were scored. `apart`: 1 minus the mean Jaccard index of the first 10
    passages over all pairs of routes that ended well, 0 (the same passages) to 1 (none in common), None with
    fewer than two. `best`, `worst`: the routes at the extremes.
    """

    question: str
    spread: float | None
    apart: float | None
    best: tuple[str, ...] = ()
    worst: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """Questions with a route's value minus the baseline's; the largest change first, ties by question."""

    improved: tuple[tuple[str, float], ...]
    worse: tuple[tuple[str, float], ...]
    same: tuple[str, ...]

    @property
    def n(self) -> int:
        """Return the number of questions."""
        return len(self.improved) + len(self.worse) + len(self.same)


def disagreements(
    values: ByRoute, metric: str, rankings: Mapping[str, Mapping[str, Sequence[str]]], *, depth: int = TOP
) -> list[Disagreement]:
    """Every question of `values` or `rankings`, the widest spread first, then the farthest apart.

    `rankings`: question -> route -> passage ids, of the routes that ended well; two empty ones are alike.
    """
    questions = dict.fromkeys([*(q for by in values.values() for q in by), *rankings])
    found = [_one(question, values, metric, rankings.get(question, {}), depth) for question in questions]
    return sorted(found, key=lambda one: (-(one.spread or 0.0), -(one.apart or 0.0)))


def moved(values: ByRoute, route: str, baseline: str, metric: str) -> Moved:
    """Return the questions on which `route` is better than `baseline`, worse, and the same, if both were
    scored.
    """
    by = by_question(values, route, baseline, metric)
    return Moved(
        tuple(sorted(((q, d) for q, d in by.items() if d > SAME), key=lambda one: (-one[1], one[0]))),
        tuple(sorted(((q, d) for q, d in by.items() if d < -SAME), key=lambda one: (one[1], one[0]))),
        tuple(q for q, d in by.items() if abs(d) <= SAME),
    )


def _one(
    question: str, values: ByRoute, metric: str, lists: Mapping[str, Sequence[str]], depth: int
) -> Disagreement:
    scored = {
        route: value
        for route, by in values.items()
        if question in by and (value := by[question].get(metric)) is not None
    }
    top, low = max(scored.values(), default=0.0), min(scored.values(), default=0.0)
    pairs = list(combinations([ids[:depth] for ids in lists.values()], 2))
    likeness = [jaccard(one, other, depth) if one or other else 1.0 for one, other in pairs]
    return Disagreement(
        question,
        top - low if len(scored) > 1 else None,
        1 - sum(likeness) / len(likeness) if likeness else None,
        tuple(route for route, value in scored.items() if value == top),
        tuple(route for route, value in scored.items() if value == low),
    )
