"""Each criterion for one route: passed, failed, or undetermined; what is missing never passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.analysis.latency_percentiles import NEEDED
from core.analysis.metrics import titled
from core.domain.format import between, milliseconds, number
from core.evaluation import finding
from core.evaluation.finding import count, quantity, share
from core.evaluation.pairs import Loss
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.release.rule import RouteFigures, State, states

Told = tuple[str, float | None, float | None, str]  # name, value, limit and words of a check
UNPRICED = "prices or token counts are missing: set llm_price_prompt and llm_price_completion"
NO_LOSS = "no loss in any kind of question"
ALLOW = "--allow-unlike-machines, or the switch on Release"
LABEL_MORE = "too many of its passages are unjudged: label more"


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
        if self.state == "cannot be told" or self.value is None or self.limit is None:
            return 1.0
        return abs(self.value - self.limit) / max(abs(self.limit), 1e-9)


def figures_of(measured: Measured, route: str, metric: str, found: Sequence[Loss] | None) -> RouteFigures:
    """Collect the figures of a measured route; `found` are the losses in the metric."""
    lost = [one.shown for one in found or () if one.route == route]
    return RouteFigures(
        route,
        measured.mean(route, metric),
        measured.p50(route),
        measured.p95(route),
        measured.tokens(route),
        measured.calls(route),
        measured.cost(route),
        measured.failed(route),
        measured.mean(route, UNJUDGED),
        0 if route == measured.baseline else sum(lost) if lost else None,
        measured.figures.interrupted,
    )


def checks(
    measured: Measured, one: RouteFigures, criteria: Criteria, found: Sequence[Loss] | None
) -> tuple[Check, ...]:
    """Return the criteria that are asked for, in order, each with what it comes to in words; the metric is
    always one of them.
    """
    told: Mapping[str, Callable[[], Told]] = {
        "minimum": lambda: _quality(measured, one, criteria),
        "interrupted": lambda: (
            "all questions asked",
            None,
            None,
            f"the evaluation was stopped after {measured.questions} questions: resume it",
        ),
        "max_p95_ms": lambda: _most(
            "p95",
            one.p95_ms,
            criteria.max_p95_ms,
            milliseconds,
            _untimed(measured, one.route),
        ),
        "max_cost": lambda: _most("cost of 1,000 questions", one.cost, criteria.max_cost, quantity, UNPRICED),
        "max_tokens": lambda: _most(
            "tokens a question",
            one.tokens,
            criteria.max_tokens,
            quantity,
            "the model was called, but its token counts are unknown",
        ),
        "max_calls": lambda: _most(
            "model calls a question", one.calls, criteria.max_calls, quantity, "it completed no question"
        ),
        "max_failed": lambda: _most(
            "failed", one.failed, criteria.max_failed, share, "no question was asked"
        ),
        "max_unjudged": lambda: _judged(one, criteria),
        "no_loss": lambda: _no_loss(measured, one, found),
    }
    made = []
    for key, state in states(one, criteria).items():
        name, value, limit, words = told[key]()
        made.append(Check(name, state, value, limit, words))
    return tuple(made)


def _untimed(measured: Measured, route: str) -> str:
    """Return why there is no percentile of time."""
    if measured.untimed:
        return f"{measured.untimed}. Measure on machines of one kind, or allow it ({ALLOW})"
    return f"a 95th percentile needs {NEEDED[95]} measurements; there are {measured.ended(route)}"


def _quality(measured: Measured, one: RouteFigures, criteria: Criteria) -> Told:
    metric, least, name = criteria.metric, criteria.minimum, titled(criteria.metric)
    mean, ends = one.mean, measured.ends(one.route, metric)
    if mean is None:
        return name, None, least, "no question has a value: label some"
    counts = count(measured.counted(one.route, metric))
    told = f"{number(mean)} ({finding.ends(ends)}, {counts})" if ends else f"{number(mean)} ({counts})"
    if least is None:
        return name, mean, None, told
    if mean < least:
        return (
            name,
            mean,
            least,
            told + ("; its interval reaches the limit" if ends and ends[1] >= least else ""),
        )
    if ends is None:
        return name, mean, least, f"{told}; met by the mean, which has no interval"
    by = (
        "met by the lower end of the interval too"
        if ends[0] >= least
        else "met by the mean only, not by the lower end of the interval"
    )
    return name, mean, least, f"{told}; {by}"


def _most(
    name: str, value: float | None, limit: float | None, in_words: Callable[[float], str], untold: str
) -> Told:
    return name, value, limit, untold if value is None else in_words(value)


def _judged(one: RouteFigures, criteria: Criteria) -> Told:
    name, value, limit = "unjudged of the first ten", one.unjudged, criteria.max_unjudged
    if value is None or limit is None:
        return name, None, limit, "no question is labelled"
    return name, value, limit, share(value) + ("" if value <= limit else f": {LABEL_MORE}")


def _no_loss(measured: Measured, one: RouteFigures, found: Sequence[Loss] | None) -> Told:
    if one.route == measured.baseline:
        return NO_LOSS, None, None, "it is the baseline"
    mine = [loss for loss in found or () if loss.route == one.route]
    if not mine:
        told = "no kind of question has values for both routes, or metrics.json alone lacks them"
        return NO_LOSS, None, None, told
    lost = sorted((loss for loss in mine if loss.shown), key=lambda loss: loss.delta)
    if lost:
        return NO_LOSS, float(len(lost)), 0.0, f"worse on {'; '.join(map(in_figures, lost))}"
    return NO_LOSS, 0.0, 0.0, f"none shown in {count(len(mine), 'kinds')}{_not_excluded(mine)}"


def in_figures(loss: Loss) -> str:
    """Return a loss with the interval it rests on."""
    ends_ = between(loss.low, loss.high, signed=True)
    delta = number(loss.delta, signed=True)
    return f"{loss.mode} {delta} ({100 * loss.level:.3g}% interval {ends_}, {count(loss.n)})"


def _not_excluded(mine: Sequence[Loss]) -> str:
    """Return the losses that so few questions cannot exclude."""
    blind = [one.mode for one in mine if one.blind]
    most = max((-one.low for one in mine if not one.blind), default=0.0)
    text = f"; too few questions to show any: {', '.join(blind)}" if blind else ""
    return text + (f"; elsewhere a loss of {number(most)} is not excluded" if most > 0 else "")
