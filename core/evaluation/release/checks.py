"""Each criterion for one route: passed, failed, or not to be told; what is missing never passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.analysis.latency_percentiles import NEEDED
from core.domain.format import milliseconds
from core.evaluation.naming import named
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.losses import Loss
from core.evaluation.release.measured import UNJUDGED, Measured

State = Literal["passed", "failed", "cannot be told"]
UNPRICED = "prices or tokens are not told: set llm_price_prompt and llm_price_completion"
NO_LOSS = "no loss in any kind of question"
LABEL_MORE = "too much of what it found is unjudged: label more"


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
        """How far it is from being met, as a share of the limit; 0 where it is, 1 where nobody can tell."""
        if self.state == "passed":
            return 0.0
        if self.state == "cannot be told" or self.value is None or self.limit is None:
            return 1.0
        return abs(self.value - self.limit) / max(abs(self.limit), 1e-9)


def checks(
    measured: Measured, route: str, criteria: Criteria, found: Sequence[Loss] | None
) -> tuple[Check, ...]:
    """The criteria that are asked for, in order; the metric is always one of them."""
    asked = [_quality(measured, route, criteria)]
    if measured.figures.get("interrupted"):
        told = f"the evaluation was stopped after {measured.questions} questions: go on with it"
        asked.append(Check("all questions asked", "cannot be told", None, None, told))
    if criteria.max_p95_ms is not None:
        few = f"a 95th percentile needs {NEEDED[95]} times; there are {measured.ended(route)}"
        asked.append(_most("p95", measured.p95(route), criteria.max_p95_ms, milliseconds, few))
    if criteria.max_cost is not None:
        cost = measured.cost(route)
        asked.append(_most("cost of 1,000 questions", cost, criteria.max_cost, number, UNPRICED))
    if criteria.max_tokens is not None:
        untold = "the model was asked, and nobody told how many tokens that took"
        asked.append(_most("tokens a question", measured.tokens(route), criteria.max_tokens, number, untold))
    if criteria.max_calls is not None:
        calls, told = measured.calls(route), "it ended well at no question"
        asked.append(_most("model calls a question", calls, criteria.max_calls, number, told))
    if criteria.max_failed is not None:
        told = "no question was asked"
        asked.append(_most("failed", measured.failed(route), criteria.max_failed, share, told))
    if criteria.max_unjudged is not None:
        asked.append(_judged(measured, route, criteria.max_unjudged))
    if criteria.no_loss:
        asked.append(_no_loss(measured, route, found))
    return tuple(asked)


def share(value: float) -> str:
    """A share as people read it, with a decimal, so that 0.4 % is not 0 %."""
    return f"{100 * value:.4g} %" if value < 0.1 else f"{100 * value:.1f} %"


def _quality(measured: Measured, route: str, criteria: Criteria) -> Check:
    metric, least, name = criteria.metric, criteria.minimum, named(criteria.metric)
    mean, ends = measured.mean(route, metric), measured.ends(route, metric)
    if mean is None:
        return Check(name, "cannot be told", None, least, "no question has a value: label some")
    told = f"{mean:.4f} over {measured.counted(route, metric)} questions"
    if ends:
        told += f", 95 % interval {ends[0]:.3f} to {ends[1]:.3f}"
    if least is None:
        return Check(name, "passed", mean, None, told)
    if mean < least:
        could = "; the interval reaches it" if ends and ends[1] >= least else ""
        return Check(name, "failed", mean, least, told + could)
    if ends is None:
        return Check(name, "passed", mean, least, f"{told}; met by the mean, which has no interval")
    by = "met by the lower end too" if ends[0] >= least else "met by the mean only, not by the lower end"
    return Check(name, "passed", mean, least, f"{told}; {by}")


def _most(name: str, value: float | None, limit: float, told: Callable[[float], str], untold: str) -> Check:
    if value is None:
        return Check(name, "cannot be told", None, limit, untold)
    return Check(name, "passed" if value <= limit else "failed", value, limit, told(value))


def _judged(measured: Measured, route: str, limit: float) -> Check:
    value = measured.mean(route, UNJUDGED)
    if value is None:
        return Check("unjudged of the first ten", "cannot be told", None, limit, "no question is labelled")
    state: State = "passed" if value <= limit else "cannot be told"
    told = share(value) + ("" if state == "passed" else f": {LABEL_MORE}")
    return Check("unjudged of the first ten", state, value, limit, told)


def _no_loss(measured: Measured, route: str, found: Sequence[Loss] | None) -> Check:
    name = NO_LOSS
    if route == measured.baseline:
        return Check(name, "passed", None, None, "it is the baseline")
    mine = [one for one in found or () if one.route == route]
    if not mine:
        told = "no kind of question has values of both routes, or metrics.json alone does not tell"
        return Check(name, "cannot be told", None, None, told)
    lost = sorted((one for one in mine if one.verdict == "worse"), key=lambda one: one.delta)
    if lost:
        told = "; ".join(f"{one.mode} {one.delta:+.3f} (p {one.p_holm:.3f}, n {one.n})" for one in lost)
        return Check(name, "failed", float(len(lost)), 0.0, f"worse at {told}")
    return Check(name, "passed", 0.0, 0.0, f"none shown in {counted(len(mine), 'kind')}{_unseen(mine)}")


def _unseen(mine: Sequence[Loss]) -> str:
    """Which losses so few questions cannot show."""
    blind = [one.mode for one in mine if one.blind]
    seen = [one.detectable for one in mine if one.detectable is not None and not one.blind]
    told = f"; too few questions to show any: {', '.join(blind)}" if blind else ""
    return told + (f"; elsewhere one below {max(seen):.2f} may be missed" if seen else "")


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float) -> str:
    """A count or an amount with the digits that matter."""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
