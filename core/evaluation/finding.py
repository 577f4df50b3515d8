"""A finding about a mean or a difference: one record, and the one place that puts it into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.domain.format import between, number, p_value

MARGIN = 0.05  # the loss of a metric that people accept for a cheaper route
SAME, NONE = "the same", "no difference shown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The mean of `metric` for `subject`; or, with a `baseline`, subject minus baseline, paired by question.
    `estimate` is None if nothing was measured, `interval` its 95% interval, `p` the tested p-value, `n` the
    number of `unit`. `detectable`: the smallest true difference that would be found four times out of five.
    `verdict`: "better", "worse", "no difference shown", or "the same" if no question differs; "" for a mean.
    `before`: the baseline's own mean. `wins`, `losses`: numbers of questions.
    """

    subject: str
    metric: str
    estimate: float | None
    interval: tuple[float, float] | None = None
    p: float | None = None
    n: int = 0
    detectable: float | None = None
    baseline: str | None = None
    verdict: str = ""
    before: float | None = None
    wins: int = 0
    losses: int = 0
    unit: str = "questions"

    @property
    def mean(self) -> float:
        """Return the mean of the subject itself, where that of its baseline is known."""
        return (self.before or 0.0) + (self.estimate or 0.0)

    @property
    def shown(self) -> bool:
        """Return whether a difference was found."""
        return self.verdict in ("better", "worse")


def mean(
    subject: str, metric: str, value: float | None, ends: Sequence[float] | None = None, n: int = 0
) -> Finding:
    """Make the finding of a mean with its interval."""
    return Finding(subject, metric, value, _pair(ends), n=n)


def compared(
    row: Mapping[str, Any] | None, subject: str, baseline: str, metric: str, before: float | None = None
) -> Finding:
    """Return a comparison of core.evaluation.comparison.family; None: the two share no question."""
    if row is None:
        return Finding(subject, metric, None, baseline=baseline, before=before)
    same = row.get("ties") == row["n"]
    return Finding(
        subject,
        metric,
        row["delta"],
        _pair(row.get("ci95")),
        row["p_holm"],
        row["n"],
        row.get("detectable_holm"),
        baseline,
        SAME if same else row["verdict"],
        before,
        row.get("wins", 0),
        row.get("losses", 0),
    )


def sentence(found: Finding) -> str:
    """Return the finding in one sentence; names stay as they are, "the" at its beginning gets a capital."""
    said = _sentence(found)
    return f"The{said[3:]}" if said.startswith("the ") else said


def _sentence(found: Finding) -> str:
    one, other, what = found.subject, found.baseline, found.metric
    if found.estimate is None:
        if other is None:
            return f"{one} has no {what}: it was scored on no question."
        return f"{one} and {other} have no scored question in common."
    if other is None:
        return f"{one} has a mean of {figures(found)}."
    if found.verdict == SAME:
        every = f"all {count(found.n, found.unit)}" if found.n > 1 else count(found.n, found.unit)
        return f"{one} and {other} have the same {what} on {every}."
    if found.verdict == "worse":
        turned = found.interval and [-end for end in reversed(found.interval)]
        return f"{one} trails {other} by {number(-found.estimate)} {what}{_support(found, turned)}."
    if found.shown:
        return f"{one} beats {other} by {number(found.estimate)} {what}{_support(found, found.interval)}."
    said = f"No difference found between {one} and {other}: {figures(found)}"
    if found.detectable:
        said += f"; differences below {number(found.detectable)} could not have been detected reliably"
    return f"{said}."


def figures(found: Finding) -> str:
    """Return the numbers alone: +0.042 nDCG@10 (95% interval +0.011 to +0.073, p = 0.004, 96 questions)."""
    if found.estimate is None:
        return "not measured"
    signed = found.baseline is not None
    parts = (number(found.estimate, signed=signed), found.metric)
    return " ".join(filter(None, parts)) + _support(found, found.interval, signed=signed)


def quantity(value: float) -> str:
    """Return a count or an amount with the digits that matter."""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share as people read it, with a decimal, so that 0.4% is not 0%."""
    return f"{100 * value:.4g}%" if value < 0.1 else f"{100 * value:.1f}%"


def ends(pair: Sequence[float] | None, *, signed: bool = False) -> str:
    """Return an interval: "95% interval 0.011 to 0.073", or "" without one."""
    if not pair:
        return ""
    return f"95% interval {between(*pair, signed=signed)}"


def count(n: int, unit: str = "questions") -> str:
    """Return a count with its noun: 1 question, 96 questions."""
    return f"{n:,} {unit.removesuffix('s') if n == 1 else unit}"


def listed(names: Sequence[str]) -> str:
    """Join names: A, B and C."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _support(found: Finding, interval: Sequence[float] | None, *, signed: bool = False) -> str:
    """Return the evidence of a figure in brackets, or "" for nothing."""
    p = "" if found.p is None else p_value(found.p)
    parts = (ends(interval, signed=signed), p, count(found.n, found.unit) if found.n else "")
    said = ", ".join(filter(None, parts))
    return f" ({said})" if said else ""


def _pair(found: Sequence[float] | None) -> tuple[float, float] | None:
    return (found[0], found[1]) if found else None
