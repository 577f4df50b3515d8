"""The variation of figures when the same questions are rerun, for routes that call the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from core.evaluation.comparison import ByRoute
from core.evaluation.effects import SAME


@dataclass(frozen=True, slots=True)
class Stability:
    """One metric of one route over `rounds`, over the `n` questions it was scored on in every round.

    `means`: of each round. `sd`: their sample standard deviation. `changed`: the share of questions whose
    value was not the same in all rounds. `deltas`: the mean difference from the baseline in each round, over
    the `paired` questions that both were scored on throughout; a baseline that was not asked again stands
    with its only values. `varies`: the largest of them minus the smallest.
    """

    route: str
    metric: str
    n: int
    means: tuple[float, ...]
    sd: float
    changed: float
    paired: int = 0
    deltas: tuple[float, ...] = ()

    @property
    def varies(self) -> float | None:
        """By how much the difference from the baseline varies between rounds; None without one."""
        return max(self.deltas) - min(self.deltas) if self.deltas else None

    @property
    def larger(self) -> bool | None:
        """Return whether the difference is larger in every round than its variation between rounds, or None
        without a difference. It then has one sign, and its size in each round exceeds the largest difference
        between two rounds.
        """
        if not self.deltas:
            return None
        return min(map(abs, self.deltas)) > max(self.deltas) - min(self.deltas)


def stability(
    rounds: Sequence[ByRoute], baseline: str, metrics: Sequence[str]
) -> dict[str, dict[str, Stability]]:
    """Route -> metric -> how stable it is, from route -> question -> metric -> value of two rounds or more.

    The first round has all routes; those in a later one were asked again. A route and metric without a
    question that was scored in every round are left out.
    """
    again = [route for route in rounds[0] if len(rounds) > 1 and all(route in one for one in rounds[1:])]
    found: dict[str, dict[str, Stability]] = {}
    for route in again:
        for metric in metrics:
            one = _stability(rounds, route, baseline, metric)
            if one is not None:
                found.setdefault(route, {})[metric] = one
    return found


def block(found: Mapping[str, Mapping[str, Stability]], rounds: int) -> dict[str, Any]:
    """Stability as the figures of an evaluation hold it."""
    routes: dict[str, dict[str, Any]] = {}
    for route, by in found.items():
        routes[route] = {}
        for metric, one in by.items():
            routes[route][metric] = to_jsonable_python(one, exclude={"route", "metric"})
            routes[route][metric] |= {"varies": one.varies, "larger": one.larger}
    return {"rounds": rounds, "routes": routes}


def _stability(rounds: Sequence[ByRoute], route: str, baseline: str, metric: str) -> Stability | None:
    mine = [one[route] for one in rounds]
    questions = _throughout(mine, metric)
    if not questions:
        return None
    table = np.array([[by[q][metric] for q in questions] for by in mine], dtype=float)
    means = table.mean(axis=1)
    both, deltas = [], ()
    theirs = [one.get(baseline, rounds[0].get(baseline, {})) for one in rounds]
    if route != baseline and (both := _throughout([*mine, *theirs], metric)):
        pairs = zip(mine, theirs, strict=True)
        apart = [[(a[q][metric] or 0.0) - (b[q][metric] or 0.0) for q in both] for a, b in pairs]
        deltas = tuple(np.mean(apart, axis=1).tolist())
    return Stability(
        route,
        metric,
        len(questions),
        tuple(means.tolist()),
        float(means.std(ddof=1)),
        float((np.ptp(table, axis=0) > SAME).mean()),
        len(both),
        deltas,
    )


def _throughout(tables: Sequence[Mapping[str, Mapping[str, float | None]]], metric: str) -> list[str]:
    """Return the questions with a value in every table."""
    return [q for q in tables[0] if all(q in one and one[q].get(metric) is not None for one in tables)]
