"""The figures of an oracle that chooses the best route for each question: its mean, each route's gap to it,
and the two routes that complement each other most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from core.evaluation.comparison import ByRoute
from core.evaluation.statistics import Interval, largest_interval, mean_interval, mean_intervals


@dataclass(frozen=True, slots=True)
class Lost:
    """A route's regret: the best value of each question minus the route's, over the `n` questions it was
    scored on. `best`: on how many of them no route was better, ties counted for each.
    """

    route: str
    mean: float
    ci95: Interval | None
    n: int
    best: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two routes over the `n` questions both were scored on: `mean` of the better value of each question, and
    `gain`, that minus the mean of the `better` route. `ci95` allows for `better` being chosen on the same
    questions (see core.evaluation.statistics.largest_interval).
    """

    routes: tuple[str, str]
    mean: float
    better: str
    gain: float
    ci95: Interval | None
    n: int


@dataclass(frozen=True, slots=True)
class Oracle:
    """The best route of each question, among those scored on it.

    `best`: question -> value and the routes that reach it. `lost`: least regret first. `pairs`: largest gain
    first. The oracle chooses with the labels in hand: no router reaches it, and chance alone raises it.
    """

    metric: str
    mean: float
    ci95: Interval | None
    best: Mapping[str, tuple[float, tuple[str, ...]]]
    lost: tuple[Lost, ...]
    pairs: tuple[Pair, ...]

    @property
    def n(self) -> int:
        """Return the number of questions."""
        return len(self.best)


def oracle(values: ByRoute, metric: str) -> Oracle | None:
    """Return the oracle of all routes in `values`, route -> question -> metric -> value, or None without any
    value.
    """
    known = {
        route: {question: value for question, row in by.items() if (value := row.get(metric)) is not None}
        for route, by in values.items()
    }
    known = {route: by for route, by in known.items() if by}
    if not known:
        return None
    best = {}
    for question in dict.fromkeys(question for by in known.values() for question in by):
        here = {route: by[question] for route, by in known.items() if question in by}
        top = max(here.values())
        best[question] = (top, tuple(route for route, value in here.items() if value == top))
    tops = [top for top, _ in best.values()]
    columns = {route: [best[q][0] - value for q, value in by.items()] for route, by in known.items()}
    lost = [
        Lost(route, float(np.mean(column)), pair, len(column), sum(route in best[q][1] for q in known[route]))
        for (route, column), pair in zip(columns.items(), mean_intervals(list(columns.values())), strict=True)
    ]
    lost.sort(key=lambda one: one.mean)
    return Oracle(metric, float(np.mean(tops)), mean_interval(tops), best, tuple(lost), _pairs(known))


def block(found: Oracle | None) -> dict[str, Any] | None:
    """Return an oracle as the figures of an evaluation hold it, without its questions."""
    if found is None:
        return None
    one: dict[str, Any] = to_jsonable_python(found)
    del one["best"]
    return {**one, "n": found.n, "regret": {row["route"]: row for row in one.pop("lost")}}


def _pairs(known: Mapping[str, Mapping[str, float]]) -> tuple[Pair, ...]:
    """Every two routes that share a question. Those that share the same ones share their resamples."""
    shared: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for one, other in combinations(known, 2):
        if both := tuple(question for question in known[one] if question in known[other]):
            shared.setdefault(both, []).append((one, other))
    found: list[Pair] = []
    for questions, pairs in shared.items():
        for pair in pairs:
            alone = np.array([[known[route][question] for question in questions] for route in pair])
            together = alone.max(axis=0)
            # The gain is the smaller of what the two routes lose to the better value of each question.
            below = alone - together
            low, high = largest_interval(below, -1.0, 0.0)
            better = pair[0] if alone[0].mean() >= alone[1].mean() else pair[1]
            gain = max(0.0, float(-below.mean(axis=1).max()))
            mean = float(together.mean())
            found.append(Pair(pair, mean, better, gain, (-high, -low), len(questions)))
    return tuple(sorted(found, key=lambda pair: -pair.gain))
