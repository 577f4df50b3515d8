"""Each criterion for one route: passed, failed, or undetermined; what is missing never passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from core.analysis.latency_percentiles import NEEDED
from core.analysis.metrics import titled
from core.domain.format import between, milliseconds, number
from core.evaluation import finding, verdict
from core.evaluation.comparison import Difference
from core.evaluation.finding import count, quantity, share
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import Measured, RouteFigures

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
        if self.state == "passed":
            return 0.0
        if self.state == OPEN or self.value is None or self.limit is None:
            return 1.0
        return abs(self.value - self.limit) / max(abs(self.limit), 1e-9)


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
    for field, figure, name, in_words, unknown in MOST:
        limit, value = getattr(criteria, field), getattr(one, figure)
        if limit is None:
            continue
        if value is not None:
            made.append(Check(name, "passed" if value <= limit else "failed", value, limit, in_words(value)))
            continue
        if field == "max_p95_ms":
            unknown = f"a 95th percentile needs {NEEDED[95]} measurements; there are {measured.ended(route)}"
            if measured.untimed:
                unknown = f"{measured.untimed}. Measure on machines of one kind, or allow it ({ALLOW})"
        made.append(Check(name, OPEN, value, limit, unknown))
    if criteria.max_unjudged is not None:  # more labels may show that it is met
        name, value, limit = "unjudged of the first ten", one.unjudged, criteria.max_unjudged
        met = value is not None and value <= limit
        told = (
            "no question is labelled" if value is None else share(value) + ("" if met else f": {LABEL_MORE}")
        )
        made.append(Check(name, "passed" if met else OPEN, value, limit, told))
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
    if least is not None and ends is None:
        told += "; met by the mean, which has no interval"
    elif least is not None and ends is not None:
        lower = ends[0] >= least
        told += "; met by the "
        told += (
            "lower end of the interval too" if lower else "mean only, not by the lower end of the interval"
        )
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
