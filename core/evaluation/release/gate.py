"""Each criterion for each measured route, and the decision which of them to ship by these limits; what is
missing never passes a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import inf
from typing import Any, Literal

from core.analysis.metrics import HEADLINE, titled
from core.analysis.timeline import NEEDED
from core.domain.errors import BadInput
from core.domain.format import between, milliseconds, number
from core.evaluation import finding, verdict
from core.evaluation.comparison import Difference, Equal, from_summary
from core.evaluation.costs import Cost
from core.evaluation.finding import count, quantity, share
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import Measured, RouteFigures
from core.evaluation.release.regressions import Regressions
from core.evaluation.templating import say, sentences
from core.evaluation.verdict import Option, Reason, Verdict
from core.routes.registry import routes

State = Literal["passed", "failed", "cannot be told"]
OPEN: State = "cannot be told"
SHOWN: dict[str, str] = {OPEN: "cannot be determined"}  # what people read for the state that is stored
UNPRICED = "prices or token counts are missing: set llm_price_prompt and llm_price_completion"
UNCOUNTED = "the model was called, but its token counts are unknown"
NO_LOSS = "no loss in any kind of question"
ALLOW = "--allow-unlike-machines, or the switch on Release"
LABEL_MORE = "too many of its passages are unjudged: label more"
# upper limits: field of Criteria, field of RouteFigures, name, form, and the words for an unknown figure
MOST: tuple[tuple[str, str, str, Callable[[float], str], str], ...] = (
    ("max_p95_ms", "p95_ms", "p95", milliseconds, ""),
    ("max_cost", "cost", "cost of 1,000 questions", quantity, UNPRICED),
    ("max_tokens", "tokens", "tokens a question", quantity, UNCOUNTED),
    ("max_calls", "calls", "model calls a question", quantity, "it completed no question"),
    ("max_failed", "failed", "failed", share, "no question was asked"),
    ("max_unjudged", "unjudged", "unjudged of the first ten", share, "no question is labelled"),
)


@dataclass(frozen=True, slots=True)
class Check:
    """One criterion for one route: the measured `value`, its `limit`, and in words what that comes to."""

    name: str
    state: State
    value: float | None
    limit: float | None
    told: str

    @property
    def short_by(self) -> float:
        """Return the distance to the limit as a share of it: 0 if it is met, 1 if undetermined."""
        if self.state == OPEN or self.value is None or self.limit is None:
            return float(self.state != "passed")
        return 0.0 if self.state == "passed" else abs(self.value - self.limit) / max(abs(self.limit), 1e-9)


@dataclass(frozen=True, slots=True)
class Candidate(RouteFigures):
    """One route: its figures, and what they come to against each limit."""

    title: str
    # the kinds of question at which it is shown to be worse than the baseline; None if that is not known
    lost: int | None
    checks: tuple[Check, ...]
    # the limits that it is shown to miss: a mean below the minimum by less than its interval is not
    misses: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Return whether every limit is met."""
        return all(one.state == "passed" for one in self.checks)

    @property
    def fails(self) -> bool:
        """Return whether a limit is known not to be met."""
        return any(one.state == "failed" for one in self.checks)

    @property
    def state(self) -> verdict.State:
        """Return whether it passes or fails the limits, or is still open."""
        return "passes" if self.passes else "fails" if self.misses else "open"


def candidate(
    measured: Measured, route: str, criteria: Criteria, found: Sequence[Difference] | None = None
) -> Candidate:
    """Check a route against the criteria asked for, in order; the metric is always one of them. `found` are
    the losses in the metric.
    """
    one = measured.of(route, criteria.metric)
    quality, near = _quality(measured, one, criteria)
    made = [quality]
    if one.interrupted:
        told = f"the evaluation was stopped after {measured.questions} questions: resume it"
        made.append(Check("all questions asked", OPEN, None, None, told))
    slow = f"a 95th percentile needs {NEEDED[95]} measurements; there are {measured.ended(route)}"
    if measured.untimed:
        slow = f"{measured.untimed}. Measure on machines of one kind, or allow it ({ALLOW})"
    for field, figure, name, in_words, unknown in MOST:
        limit, value = getattr(criteria, field), getattr(one, figure)
        if limit is None:
            continue
        state, told = OPEN, unknown or slow
        if value is not None:
            state, told = "passed" if value <= limit else "failed", in_words(value)
            if figure == "unjudged" and state == "failed":  # more labels may show that it is met
                state, told = OPEN, f"{told}: {LABEL_MORE}"
        made.append(Check(name, state, value, limit, told))
    mine = [loss for loss in found or () if loss.route == route]
    lost = 0 if route == measured.baseline else sum(loss.high < 0 for loss in mine) if mine else None
    if criteria.no_loss:
        made.append(_no_loss(lost, mine))
    missed = [one.name for one in made if one.state == "failed" and not (near and one is quality)]
    figures = {field.name: getattr(one, field.name) for field in fields(one)}
    return Candidate(
        **figures, title=measured.title(route), lost=lost, checks=tuple(made), misses=tuple(missed)
    )


def _quality(measured: Measured, one: RouteFigures, criteria: Criteria) -> tuple[Check, bool]:
    """Return the check of the mean, and whether its interval reaches the minimum."""
    metric, least, name = criteria.metric, criteria.minimum, titled(criteria.metric)
    mean, ends = one.mean, measured.ends(one.route, metric)
    if mean is None:
        return Check(name, OPEN, None, least, "no question has a value: label some"), False
    counts = count(measured.counted(one.route, metric))
    told = f"{number(mean)} ({finding.ends(ends)}, {counts})" if ends else f"{number(mean)} ({counts})"
    near = ends is not None and least is not None and ends[1] >= least
    if least is not None and mean < least:
        told += "; its interval reaches the limit" if near else ""
        return Check(name, "failed", mean, least, told), near
    if least is not None:
        lower = ends is not None and ends[0] >= least
        told += f"; met by the {'lower end of the interval too' if lower else 'mean only'}"
    return Check(name, "passed", mean, least, told), near


def _no_loss(lost: int | None, mine: Sequence[Difference]) -> Check:
    if lost is None:
        told = "no kind of question has values for both routes, or metrics.json alone lacks them"
        return Check(NO_LOSS, OPEN, None, None, told)
    if not mine:
        return Check(NO_LOSS, "passed", None, None, "it is the baseline")
    shown = [
        f"{loss.mode} {number(loss.delta, signed=True)} ({100 * loss.level:.3g}% interval "
        f"{between(loss.low, loss.high, signed=True)}, {count(loss.n)})"
        for loss in sorted(mine, key=lambda loss: loss.delta)
        if loss.high < 0
    ]
    if shown:
        return Check(NO_LOSS, "failed", float(len(shown)), 0.0, f"worse on {'; '.join(shown)}")
    # the losses that so few questions cannot exclude
    blind = [one.mode for one in mine if one.blind]
    most = max((-one.low for one in mine if not one.blind), default=0.0)
    told = f"none shown in {count(len(mine), 'kinds')}"
    told += f"; too few questions to show any: {', '.join(blind)}" if blind else ""
    told += f"; elsewhere a loss of {number(most)} is not excluded" if most > 0 else ""
    return Check(NO_LOSS, "passed", 0.0, 0.0, told)


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
    def headline(self) -> str:
        """Return the first sentence: what to ship, or what is known if that is not decided."""
        return say("decision.headline", self)

    @property
    def sentences(self) -> list[str]:
        """Return all sentences: what its questions are if a model wrote them, then the headline."""
        return sentences("decision.every", self)

    @property
    def required(self) -> str:
        """Return the criteria, one phrase each."""
        return f"Required: {'; '.join(sentences('decision.asked', self.criteria))}"

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
    if measured.drawn and not measured.corrected(criteria.metric):
        raise BadInput(
            f"labelled questions were drawn with known chances, for which only {HEADLINE} is corrected: "
            f"decide by that, not by {criteria.metric}"
        )
    lost = measured.losses(criteria.metric)
    measured = measured.timed(criteria)
    candidates = tuple(candidate(measured, route, criteria, lost) for route in measured.routes)
    found = _verdict(measured, criteria, candidates)
    best = found.best_so_far
    return Decision(
        measured.name,
        measured.figures.corpus,
        measured.figures.dataset,
        measured.baseline,
        criteria,
        found,
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
        options.append(Option(one.route, one.mean, measured.counted(one.route, metric), one.state, cost))
    rules: dict[str, Any] = {
        "margin": criteria.margin,
        "min_questions": criteria.min_questions,
        "cheaper": criteria.cheaper,
        "named": measured.title,
    }
    pairs = {names: one.difference for names, one in corrected.items()}
    if (values := measured.values(metric)) is not None and not measured.drawn:
        found = verdict.by_values(options, values, pairs, **rules)
    else:
        found = verdict.decide(options, partial(_from_figures, measured, metric, pairs), **rules)
    best = found.chosen or (found.best_so_far.route if found.best_so_far else None)
    worth = [corrected[best, one.other] for one in found.pairs if best and (best, one.other) in corrected]
    if not worth:
        return found
    text = say("verdict.corrected", measured.figures.corrected, worth[0])
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
    """Return the number of limits missed, the distance to them, and the mean, to find the nearest route."""
    missed = [check for check in one.checks if check.state != "passed"]
    short = sum(check.short_by for check in missed)
    return len(missed), short, inf if one.mean is None else -one.mean
