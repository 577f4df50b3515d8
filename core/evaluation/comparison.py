"""Means over questions and differences between routes; where a metric does not apply it is not counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.evaluation import effects, statistics
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
            **{name: _mean(columns[key, name]) for name in metrics},
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


def _mean(column: Sequence[float]) -> float | None:
    return sum(column) / len(column) if column else None


def _column(values: ByQuestion, name: str) -> list[float]:
    return [value for one in values.values() if (value := one.get(name)) is not None]
