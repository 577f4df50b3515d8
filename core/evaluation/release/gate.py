"""The decision which measured route to ship by given limits, or the known facts if it is not decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import inf
from typing import Any

from core.domain.errors import BadInput
from core.evaluation import verdict
from core.evaluation.comparison import Difference, Equal, from_summary
from core.evaluation.costs import Cost
from core.evaluation.release.checks import Candidate, candidate
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import Measured
from core.evaluation.release.regressions import Regressions
from core.evaluation.verdict import Option, Reason, Verdict
from core.evaluation.verdict import decide as decide_by_figures
from core.routes.registry import routes


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on an evaluation's routes under some limits, with all it rests on."""

    # the evaluation, and what it was measured on
    name: str
    corpus: str
    dataset: str
    baseline: str
    criteria: Criteria
    verdict: Verdict
    # the route to look at if none is chosen: the best so far, else the route that misses the least
    nearest: str
    # distinct routes: `equal` names those that returned the same as one of them on every question
    candidates: tuple[Candidate, ...]
    losses: tuple[Difference, ...]
    equal: tuple[Equal, ...] = ()
    # the routes that alone were to be compared with the baseline; () for all
    planned: tuple[str, ...] = ()
    # the questions people complained of, by the chosen route; None if none were asked for
    regressions: Regressions | None = None
    # the note that stands first if a model wrote questions and labels
    generated: str = ""

    @property
    def chosen(self) -> str | None:
        """Return the route to ship, or None."""
        return self.verdict.chosen

    @property
    def shown(self) -> str:
        """Return the route that reports are about: the chosen route, else the nearest."""
        return self.chosen or self.nearest

    def of(self, route: str) -> Candidate:
        """Return a measured route. Raises BadInput if it was not measured."""
        for one in self.candidates:
            if one.route == route:
                return one
        known = ", ".join(one.route for one in self.candidates)
        raise BadInput(f"route {route!r} was not measured; there are: {known}")

    def titled(self, route: str) -> str:
        """Return the title of a route; that of a measured one as it was measured."""
        titles = {name: one.title for name, one in routes().items()}
        titles |= {one.route: one.title for one in self.candidates}
        return titles.get(route, route)

    @property
    def ordered(self) -> list[Candidate]:
        """Return the routes as tables list them: the one to ship, then those that pass."""
        return sorted(self.candidates, key=lambda one: (one.route != self.chosen, not one.passes))

    @property
    def broken(self) -> bool:
        """Return whether a question from a complaint broke again."""
        return self.regressions is not None and bool(self.regressions.broken)

    def document(self) -> dict[str, Any]:
        """Return the decision as JSON values, those of the verdict among them."""
        document = asdict(self)
        document |= document.pop("verdict")
        for row, one in zip(document["candidates"], self.candidates, strict=True):
            row["passes"] = one.passes
        return document


def decide(measured: Measured, criteria: Criteria) -> Decision:
    """Compare every route with the limits and decide which to ship (see core.evaluation.verdict).

    Of routes that returned the same on every question only the simplest is a candidate. Raises BadInput for a
    metric that was not measured.
    """
    equal, measured = measured.equal, measured.distinct
    if criteria.metric not in measured.metrics():
        raise BadInput(
            f"metric {criteria.metric!r} was not measured; there are: {', '.join(measured.metrics())}"
        )
    lost = measured.losses(criteria.metric)
    measured = measured.timed(criteria)
    candidates = tuple(candidate(measured, route, criteria, lost) for route in measured.routes)
    verdict = _verdict(measured, criteria, candidates)
    best = verdict.best_so_far
    return Decision(
        measured.name,
        measured.figures.corpus,
        measured.figures.dataset,
        measured.baseline,
        criteria,
        verdict,
        best.route if best else min(candidates, key=_lacking).route,
        candidates,
        lost or (),
        equal,
        measured.plan,
        generated=measured.figures.generated.note,
    )


def _verdict(measured: Measured, criteria: Criteria, candidates: Sequence[Candidate]) -> Verdict:
    """Decide by each question's values, or where they are not known by metrics.json alone."""
    metric, priced = criteria.metric, all(one.cost is not None for one in candidates)
    corrected = measured.corrected(metric)
    options = []
    for one in candidates:
        spent = one.cost if priced else one.tokens  # a price and tokens cannot be compared
        cost = Cost(spent, one.calls, one.p50_ms)
        if measured.evaluation is not None:
            known = verdict.measured_cost(measured.evaluation.outcomes, one.route)
            cost = Cost(spent, one.calls, one.p50_ms, known.steps, {} if measured.untimed else known.times)
        mean = one.mean
        if corrected and (estimate := measured.figures.routes[one.route].corrected):
            mean = estimate.mean
        options.append(Option(one.route, mean, measured.counted(one.route, metric), one.state, cost))
    rules: dict[str, Any] = {
        "margin": criteria.margin,
        "min_questions": criteria.min_questions,
        "cheaper": criteria.cheaper,
        "named": measured.title,
    }
    pairs = {names: one.difference for names, one in corrected.items()}
    if (values := measured.values(metric)) is not None:
        found = verdict.by_values(options, values, pairs, **rules)
    else:
        found = decide_by_figures(options, partial(_from_figures, measured, metric, pairs), **rules)
    best = found.chosen or (found.best_so_far.route if found.best_so_far else None)
    worth = [corrected[best, one.other] for one in found.pairs if best and (best, one.other) in corrected]
    if not worth:
        return found
    text = (
        "A model's grades count too, corrected by people's labels: equivalent to "
        f"{worth[0].equal_to:.0f} labels; people gave {worth[0].labels:.0f}. "
        "This holds if the labelled questions are a random part of all."
    )
    return replace(found, reasons=(*found.reasons, Reason("corrected", text, best, worth[0].other)))


def _from_figures(
    measured: Measured, metric: str, known: Mapping[tuple[str, str], Difference], route: str, other: str
) -> Difference | None:
    """Compare two routes by metrics.json alone, which has only comparisons with the baseline, and corrected
    ones of all routes.
    """
    if (route, other) in known:
        return known[route, other]
    if measured.baseline not in (route, other):
        return None
    row = measured.against(other if route == measured.baseline else route, metric)
    if row is None or abs(row.delta) > 1:
        return None
    delta = -row.delta if route == measured.baseline else row.delta
    return from_summary(route, other, int(row.n), delta, row.sd)


def _lacking(one: Candidate) -> tuple[float, float, float]:
    """Return the number of limits missed, their distance, and the mean, to find the nearest route."""
    missed = [check for check in one.checks if check.state != "passed"]
    mean = -inf if one.mean is None else one.mean
    return len(missed), sum(check.short_by for check in missed), -mean
