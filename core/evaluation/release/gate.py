"""Which of the measured routes to ship by given criteria, or what each of them lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from core.domain.errors import BadInput
from core.evaluation import effects
from core.evaluation.release.checks import Check, checks
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.losses import Loss, losses, paired
from core.evaluation.release.measured import Measured
from core.evaluation.release.selection_stability import Sureness, sureness
from core.evaluation.statistics import ALPHA

Verdict = Literal["ship", "nothing passes", "not decidable"]
NOT_WORSE = ("no difference shown", "better")  # better: over the questions both have, if not over its own


@dataclass(frozen=True, slots=True)
class Candidate:
    """One route: its criteria, and the figures that the choice is made by. None: cannot be told."""

    route: str
    title: str
    checks: tuple[Check, ...]
    mean: float | None
    p50_ms: float | None
    p95_ms: float | None
    tokens: float | None
    calls: float | None
    cost: float | None

    @property
    def passes(self) -> bool:
        """Whether every criterion is met."""
        return all(one.state == "passed" for one in self.checks)

    @property
    def fails(self) -> bool:
        """Whether a criterion is known not to be met."""
        return any(one.state == "failed" for one in self.checks)

    @property
    def expense(self) -> tuple[float, float, float]:
        """What it costs, to be compared: price where it is told, else tokens; model calls; median time."""
        spent = self.tokens if self.cost is None else self.cost
        return _known(spent), _known(self.calls), _known(self.p50_ms)


@dataclass(frozen=True, slots=True)
class Rival:
    """A cheaper route that passes, against the best one: `verdict` "worse", "no difference shown", or "cannot
    be told" where the values of the questions are not there. `detectable`: see core.evaluation.effects.
    """

    route: str
    verdict: str
    delta: float | None = None
    p_holm: float | None = None
    n: int | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The route to ship (None: none passes) with all it was decided by.

    `best` is the passing route with the highest mean; `nearest` is there where nothing passes.
    """

    name: str
    baseline: str
    criteria: Criteria
    verdict: Verdict
    chosen: str | None
    best: str | None
    nearest: str | None
    candidates: tuple[Candidate, ...]
    rivals: tuple[Rival, ...]
    losses: tuple[Loss, ...]
    sureness: Sureness | None

    def of(self, route: str) -> Candidate:
        """What is known of a route; BadInput for one that was not measured."""
        for one in self.candidates:
            if one.route == route:
                return one
        known = ", ".join(one.route for one in self.candidates)
        raise BadInput(f"route {route!r} was not measured; there are: {known}")

    def document(self) -> dict[str, Any]:
        """The decision as JSON values, with whether each route passes."""
        document = asdict(self)
        for row, one in zip(document["candidates"], self.candidates, strict=True):
            row["passes"] = one.passes
        return document


def decide(measured: Measured, criteria: Criteria, known: tuple[Loss, ...] | None = None) -> Decision:
    """Hold every route against the criteria and choose one of those that pass.

    The best by the metric; with `criteria.cheaper` the cheapest of those not shown to be worse than it
    (paired randomisation test, Holm over the cheaper routes that pass). `known` are the losses in the metric
    where they were worked out before: no limit changes them. BadInput for a metric that was not measured.
    """
    if criteria.metric not in measured.metrics():
        raise BadInput(
            f"metric {criteria.metric!r} was not measured; there are: {', '.join(measured.metrics())}"
        )
    found = losses(measured, criteria.metric) if known is None else known
    candidates = tuple(_candidate(measured, route, criteria, found) for route in measured.routes)
    passing = [one for one in candidates if one.passes]
    best = min(passing, key=lambda one: (-_mean(one), *one.expense), default=None)
    rivals = _rivals(measured, criteria.metric, best, passing) if best and criteria.cheaper else ()
    chosen = best
    if best is not None:
        equal = {one.route for one in rivals if one.verdict in NOT_WORSE} | {best.route}
        among = [one for one in passing if one.route in equal]
        chosen = min(among, key=lambda one: (one.expense, -_mean(one)))
    open_ = any(not one.fails and not one.passes for one in candidates)
    return Decision(
        measured.name,
        measured.baseline,
        criteria,
        "ship" if chosen else "not decidable" if open_ else "nothing passes",
        chosen.route if chosen else None,
        best.route if best else None,
        None if chosen else min(candidates, key=_lacking).route,
        candidates,
        rivals,
        found or (),
        sureness(measured, criteria),
    )


def _candidate(measured: Measured, route: str, criteria: Criteria, found: Sequence[Loss] | None) -> Candidate:
    return Candidate(
        route,
        measured.title(route),
        checks(measured, route, criteria, found),
        measured.mean(route, criteria.metric),
        measured.p50(route),
        measured.p95(route),
        measured.tokens(route),
        measured.calls(route),
        measured.cost(route),
    )


def _known(value: float | None) -> float:
    return inf if value is None else value


def _mean(one: Candidate) -> float:
    return -inf if one.mean is None else one.mean


def _rivals(
    measured: Measured, metric: str, best: Candidate, passing: Sequence[Candidate]
) -> tuple[Rival, ...]:
    """The cheaper routes that pass, against the best; from the figures alone where that is all there is."""
    cheaper = [one.route for one in passing if one.expense < best.expense]
    values = measured.values(metric)
    if values is None:
        return tuple(_untested(measured, metric, best.route, route) for route in cheaper)
    tested = effects.family(
        {route: list(paired(values[route], values[best.route]).values()) for route in cheaper}
    )
    return tuple(
        Rival(route, one["verdict"], one["delta"], one["p_holm"], one["n"], one["detectable_holm"])
        if (one := tested.get(route))
        else Rival(route, "cannot be told")
        for route in cheaper
    )


def _untested(measured: Measured, metric: str, best: str, route: str) -> Rival:
    """By the comparison with the baseline in the figures, where one of the two is the baseline."""
    if measured.baseline not in (best, route):
        return Rival(route, "cannot be told")
    other, sign = (best, -1.0) if route == measured.baseline else (route, 1.0)
    told = measured.against(other, metric)
    if told is None:
        return Rival(route, "cannot be told")
    delta, p = sign * float(told["delta"]), float(told["p_holm"])
    worse = p < ALPHA and delta < 0
    return Rival(route, "worse" if worse else "no difference shown", delta, p, int(told["n"]))


def _lacking(one: Candidate) -> tuple[float, float, float]:
    """To find the nearest: the fewest criteria not met, then the least distance from their limits."""
    missed = [check for check in one.checks if check.state != "passed"]
    return len(missed), sum(check.short_by for check in missed), -_mean(one)
