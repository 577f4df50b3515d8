"""Which route leads, whether that is shown, and which routes the questions cannot tell from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.evaluation.comparison import ByRoute, against, means_of
from core.evaluation.more_labels import MoreLabels, between

LEAST = 0.5  # share of the questions that a route must be scored on to lead


@dataclass(frozen=True, slots=True)
class Leader:
    """The route with the highest mean, among those scored on at least half of the questions that any route
    was scored on; the first of equal ones.

    `others`: every other route against the leader, route -> figures of core.evaluation.effects.family, None
    without a question in common; the family is these comparisons. `behind` are shown to be worse, `level` are
    not. `labels`: how many more would tell the leader from the next one of those; None where there is none.
    The leader was chosen on the same questions, so it leads by a little less elsewhere.
    """

    route: str
    metric: str
    mean: float
    ci95: tuple[float, float] | None
    n: int
    others: Mapping[str, dict[str, Any] | None]
    labels: MoreLabels | None = None

    @property
    def behind(self) -> tuple[str, ...]:
        """The routes that are shown to be worse."""
        return tuple(route for route, one in self.others.items() if one and one["verdict"] == "worse")

    @property
    def level(self) -> tuple[str, ...]:
        """The routes that are not, in the order of their means."""
        return tuple(route for route in self.others if route not in self.behind)

    @property
    def shown(self) -> bool:
        """Whether it is shown to be better than every other route."""
        return not self.level


def leader(values: ByRoute, metric: str) -> Leader | None:
    """Who leads in `metric`; None where no route was scored."""
    table = means_of(values, [metric], [metric])
    scored = {route: sum(row.get(metric) is not None for row in by.values()) for route, by in values.items()}
    every = {q for by in values.values() for q, row in by.items() if row.get(metric) is not None}
    ranked = sorted((route for route in values if scored[route]), key=lambda route: -table[route][metric])
    able = [route for route in ranked if scored[route] >= LEAST * len(every)]
    if not able:
        return None
    first = able[0]
    found = against(values, first, [metric])
    ends = table[first]["ci95"][metric]
    others = {route: found[route].get(metric) for route in ranked if route != first}
    lead = Leader(
        first, metric, table[first][metric], (ends[0], ends[1]) if ends else None, scored[first],
        others,
    )  # fmt: skip
    if lead.shown:
        return lead
    mine, theirs = (
        {q: value for q, row in values[route].items() if (value := row.get(metric)) is not None}
        for route in (first, lead.level[0])
    )
    needed = between(mine, theirs, first, lead.level[0], comparisons=len(others))
    return replace(lead, labels=needed)


def labels_of(found: Mapping[str, Any]) -> MoreLabels | None:
    """The `labels` of a leader's block; None where there are none, or it is of an earlier version."""
    one = found.get("labels")
    return MoreLabels(**{**one, "ci95": tuple(one["ci95"]) if one["ci95"] else None}) if one else None


def block(found: Leader | None) -> dict[str, Any] | None:
    """A leader as the figures of an evaluation hold it."""
    if found is None:
        return None
    return {
        "metric": found.metric, "route": found.route, "mean": found.mean,
        "ci95": list(found.ci95) if found.ci95 else None, "n": found.n,
        "shown": found.shown, "behind": list(found.behind), "level": list(found.level),
        "others": dict(found.others),
        "labels": found.labels.document() if found.labels else None,
    }  # fmt: skip
