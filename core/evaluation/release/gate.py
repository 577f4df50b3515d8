"""Which of the measured routes to ship by given criteria, or what each of them lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any, Literal

from core.domain.errors import BadInput
from core.evaluation import effects
from core.evaluation.equal_routes import Equal
from core.evaluation.more_labels import MoreLabels
from core.evaluation.release.call import Call, call
from core.evaluation.release.checks import Check, checks, figures_of
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.hinge import labels
from core.evaluation.release.losses import Loss, losses, paired
from core.evaluation.release.measured import Measured
from core.evaluation.release.regressions import Regressions
from core.evaluation.release.rule import Rival, RouteFigures, choose
from core.evaluation.release.selection_stability import SelectionStability, sureness
from core.evaluation.statistics import ALPHA

Verdict = Literal["ship", "nothing passes", "not decidable"]


@dataclass(frozen=True, slots=True)
class Candidate(RouteFigures):
    """One route: the figures that the choice is made by, and what they come to against each criterion."""

    title: str
    checks: tuple[Check, ...]

    @property
    def passes(self) -> bool:
        """Whether every criterion is met."""
        return all(one.state == "passed" for one in self.checks)

    @property
    def fails(self) -> bool:
        """Whether a criterion is known not to be met."""
        return any(one.state == "failed" for one in self.checks)


@dataclass(frozen=True, slots=True)
class Decision:
    """The route to ship (None: none passes) with all it was decided by.

    `candidates` are distinct: `equal` names the routes that returned the same as one of them on every
    question. `best` is the passing route with the highest mean; `nearest` is there where nothing passes.
    `call`: how clear the choice is; None without one, or where that cannot be determined. `planned`: the
    routes that alone were to be compared with the baseline, () for all. `labels`: how many more labelled
    questions would settle it; None where that cannot be determined. `regressions`: the questions people
    complained of, with the route; None where none were asked for. `generated`: what is said first where a
    model wrote questions and labels.
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
    sureness: SelectionStability | None
    call: Call | None = None
    equal: tuple[Equal, ...] = ()
    planned: tuple[str, ...] = ()
    labels: MoreLabels | None = None
    regressions: Regressions | None = None
    generated: str = ""

    def of(self, route: str) -> Candidate:
        """What is known of a route; BadInput for one that was not measured."""
        for one in self.candidates:
            if one.route == route:
                return one
        known = ", ".join(one.route for one in self.candidates)
        raise BadInput(f"route {route!r} was not measured; there are: {known}")

    @property
    def broken(self) -> bool:
        """Whether a question that people complained of broke again."""
        return self.regressions is not None and bool(self.regressions.broken)

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
    where they were worked out before of `measured.distinct`: no limit changes them. Of routes that returned
    the same on every question the simplest is a candidate, and the others are not. BadInput for a metric that
    was not measured.
    """
    equal = measured.equal
    measured = measured.timed(criteria).distinct
    if criteria.metric not in measured.metrics():
        raise BadInput(
            f"metric {criteria.metric!r} was not measured; there are: {', '.join(measured.metrics())}"
        )
    found = losses(measured, criteria.metric) if known is None else known
    candidates = tuple(_candidate(measured, route, criteria, found) for route in measured.routes)

    def against(best: Candidate, cheaper: Sequence[Candidate]) -> tuple[Rival, ...]:
        return _rivals(measured, criteria.metric, best.route, [one.route for one in cheaper])

    choice = choose(candidates, criteria, against)
    best, chosen = choice.best, choice.chosen
    sure = sureness(measured, criteria)
    values = measured.values(criteria.metric)
    called = call(chosen.route, sure.chosen, sure.none, values) if chosen and sure else None
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
        choice.rivals,
        found or (),
        sure,
        called,
        equal,
        measured.plan,
        labels(values, candidates, choice, called),
        generated=measured.figures.get("generated", {}).get("note", ""),
    )


def _candidate(measured: Measured, route: str, criteria: Criteria, found: Sequence[Loss] | None) -> Candidate:
    known = figures_of(measured, route, criteria.metric, found)
    told = checks(measured, known, criteria, found)
    figures = {one.name: getattr(known, one.name) for one in fields(known)}
    return Candidate(**figures, title=measured.title(route), checks=told)


def _rivals(measured: Measured, metric: str, best: str, cheaper: Sequence[str]) -> tuple[Rival, ...]:
    """The cheaper routes that pass, against the best; from the figures alone where that is all there is."""
    values = measured.values(metric)
    if values is None:
        return tuple(_untested(measured, metric, best, route) for route in cheaper)
    tested = effects.family({route: list(paired(values[route], values[best]).values()) for route in cheaper})
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
    mean = -inf if one.mean is None else one.mean
    return len(missed), sum(check.short_by for check in missed), -mean
