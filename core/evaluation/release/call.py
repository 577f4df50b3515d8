"""Whether a choice is clear, or too close to call, and what it is close to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.evaluation.effects import effect

LEAST, TIMES = 0.5, 2.0  # of the resamples, and as often as whatever comes next


@dataclass(frozen=True, slots=True)
class Call:
    """How often the chosen route is chosen over resamples, and the outcome that comes next: a route, or None
    for "no route passes". `n`, `delta` and `sd` are of the chosen route minus that one, by question, in the
    metric; None where the two have fewer than two questions in common.
    """

    share: float
    rival: str | None
    rival_share: float
    n: int | None = None
    delta: float | None = None
    sd: float | None = None

    @property
    def clear(self) -> bool:
        """Whether it is chosen in at least half of the resamples, and twice as often as anything else."""
        return self.share >= LEAST and self.share >= TIMES * self.rival_share


def call(
    chosen: str,
    shares: Mapping[str, float],
    none: float,
    values: Mapping[str, Mapping[str, float]] | None,
) -> Call:
    """The call for a chosen route: `shares` and `none` as in core.evaluation.release.selection_stability,
    `values` route -> question -> value of the metric.
    """
    others: dict[str | None, float] = {route: share for route, share in shares.items() if route != chosen}
    others[None] = none
    rival = max(others, key=lambda route: others[route])
    mine, theirs = (values.get(route or "", {}) if values else {} for route in (chosen, rival))
    apart = [mine[question] - theirs[question] for question in mine if question in theirs]
    if len(apart) < 2:
        return Call(shares[chosen], rival, others[rival])
    one = effect(apart)
    return Call(shares[chosen], rival, others[rival], one["n"], one["delta"], one["sd"])
