"""Routes that returned the same on every question of an evaluation: one result, to be counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from statistics import median
from typing import Any

from core.evaluation.outcome import Outcomes

RULE = "fewer model calls and tokens, then fewer steps, then the lower median time, then the name"


@dataclass(frozen=True, slots=True)
class Equal:
    """`route` and the `others`, which returned the same passages in the same order, and the same answers, on
    all `questions`; `depth` is the length of the longest ranking compared. `route` is the simplest: see RULE.
    """

    route: str
    others: tuple[str, ...]
    questions: int
    depth: int

    @property
    def routes(self) -> tuple[str, ...]:
        """Return all routes of the group."""
        return self.route, *self.others


def find(outcomes: Outcomes, routes: Sequence[str]) -> tuple[Equal, ...]:
    """Return the routes that are equal on every question: in what they ended with, the whole ranking as saved
    in their run files, the answer and the SQL. Routes that found nothing at all are not called equal.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for route in routes:
        mine = [by[route] for by in outcomes.values() if route in by]
        if any(one.status == "ok" and one.hits for one in mine):
            same = tuple(
                (q, one.status, one.answer, one.abstained, one.citations, one.said.get("sql", ""), ids)
                for q, by in outcomes.items()
                if (one := by.get(route)) is not None
                for ids in [tuple(id for id, _ in one.hits)]
            )
            groups.setdefault(same, []).append(route)
    found = []
    for group in (group for group in groups.values() if len(group) > 1):
        first, *others = sorted(group, key=lambda route: _work(outcomes, route))
        lengths = [len(by[first].hits) for by in outcomes.values() if first in by]
        found.append(Equal(first, tuple(others), len(lengths), max(lengths)))
    return tuple(found)


def read(figures: Mapping[str, Any]) -> tuple[Equal, ...]:
    """Return them from the figures of an evaluation."""
    return tuple(Equal(**{**one, "others": tuple(one["others"])}) for one in figures.get("equal", ()))


def standing_for(found: Sequence[Equal], baseline: str) -> dict[str, str]:
    """Each route that another stands for in comparisons, and that other: the baseline in its own group, else
    the simplest.
    """
    return {
        route: one
        for group in found
        for one in [baseline if baseline in group.routes else group.route]
        for route in group.routes
        if route != one
    }


def _work(outcomes: Outcomes, route: str) -> tuple[float, float, float, float, str]:
    """By RULE, to be compared. Replies read from a file took no step that is known here."""
    mine = [one for by in outcomes.values() if (one := by.get(route)) is not None and one.status == "ok"]
    times = [one.ms for one in mine if not isnan(one.ms)]
    steps = sum(one.steps for one in mine) / len(mine)
    calls, tokens = sum(one.calls for one in mine), sum(one.tokens for one in mine)
    return calls, tokens, steps or inf, median(times) if times else inf, route
