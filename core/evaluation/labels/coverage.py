"""The contents of a pool: passages per question, and those found by each route, alone or with others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from core.evaluation.labels.types import Desk


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one route: its passages in the pool, and those that no other route found."""

    route: str
    found: int
    alone: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """`passages` in all; `least`, `middle` (median) and `most` of the questions that have some; `empty`
    questions have none. `several`: passages that two routes or more found; `unnamed`: found by no route.
    """

    passages: int
    least: int
    middle: float
    most: int
    empty: int
    several: int
    unnamed: int
    shares: tuple[Share, ...]


def coverage(desk: Desk) -> Coverage:
    """Return what the pool of a set holds; routes by what they found, the most first."""
    counts = [len(desk.pool.get(question.id, {})) for question in desk.questions]
    some = [count for count in counts if count]
    finders = [
        sorted({route for route, _ in one.found})
        for passages in desk.pool.values()
        for one in passages.values()
    ]
    found = Counter(route for routes in finders for route in routes)
    alone = Counter(routes[0] for routes in finders if len(routes) == 1)
    ordered = sorted(found, key=lambda route: (-found[route], route))
    return Coverage(
        sum(counts),
        min(some, default=0),
        float(median(some)) if some else 0.0,
        max(some, default=0),
        counts.count(0),
        sum(len(routes) > 1 for routes in finders),
        finders.count([]),
        tuple(Share(route, found[route], alone[route]) for route in ordered),
    )
