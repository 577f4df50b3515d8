"""The routes that are worth their cost: the Pareto front of a quality and a cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

Point = tuple[float | None, float | None]  # (quality, cost)
COSTS = ("p50_ms", "p95_ms", "calls", "tokens")


def front(points: Mapping[str, Point]) -> tuple[str, ...]:
    """Return the names that no other beats: none has at least their quality at no more than their cost, and
    more quality or less cost. Cheapest first, equal ones next to each other in the order of their names.

    A point without a quality or a cost (None or NaN) is neither on the front nor beats another.
    """
    known = sorted(
        (cost, -quality, name)
        for name, (quality, cost) in points.items()
        if quality is not None and cost is not None and not isnan(quality) and not isnan(cost)
    )
    found: list[str] = []
    at: tuple[float, float] | None = None  # of the last on the front: cost, and quality with its sign turned
    for cost, turned, name in known:
        if at is None or turned < at[1] or (cost, turned) == at:
            found.append(name)
            at = (cost, turned)
    return tuple(found)


def beaten_by(points: Mapping[str, Point], name: str) -> tuple[str, ...]:
    """Return the routes on the front that beat `name`; none if it is on the front itself or cannot be
    placed.
    """
    on = front(points)
    if name in on or name not in front({name: points[name]}):
        return ()
    return tuple(one for one in on if name not in front({one: points[one], name: points[name]}))


def points(figures: Mapping[str, Any], metric: str, cost: str) -> dict[str, Point]:
    """Each route's mean of `metric` and its cost, from the figures of an evaluation.

    `cost` is one of COSTS: milliseconds, or model calls or tokens (prompt and written) per question asked.
    """
    if cost not in COSTS:
        raise ValueError(f"cost={cost!r}; there are: {', '.join(COSTS)}")
    found = {}
    for route, row in figures["routes"].items():
        known = row.get(cost)
        if cost in ("calls", "tokens"):
            used = row["llm_calls"] if cost == "calls" else row["prompt_tokens"] + row["completion_tokens"]
            asked = sum(row["statuses"].values())
            known = used / asked if asked else None
        found[route] = (row.get(metric), known)
    return found
