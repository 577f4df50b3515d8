"""What other thresholds would have decided on grades that were given: for one question, and over many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, get_args

from core.reading import Grade, Grading
from core.steps import grade as graded
from core.steps.grade import Action, Verdict
from core.steps.reflect import Next, Reason, next_round

ACTIONS: tuple[Action, ...] = get_args(Action)
Edge = Literal["high", "low"]
STEPS = 50  # thresholds of a curve, besides 0


@dataclass(frozen=True, slots=True)
class Bands:
    """Grades by where they lie: from `high` on, from `low` on but below `high`, below `low`; and those that
    could not be had, which are neither a pass nor a fail. Each best first.
    """

    above: tuple[Grade, ...]
    between: tuple[Grade, ...]
    below: tuple[Grade, ...]
    without: tuple[Grade, ...]


@dataclass(frozen=True, slots=True)
class MeanRule:
    """A round's mean grade on the grader's own scale against a threshold, as `core.steps.reflect` decides."""

    mean: float | None
    before: float | None  # the mean of the round before
    number: int
    threshold: float
    gain: float
    rounds: int

    def decide(self, threshold: float, gain: float) -> tuple[Next, Reason | None]:
        """What follows with another threshold and another least gain."""
        return next_round(self.mean, self.before, self.number, threshold, gain, self.rounds)


@dataclass(frozen=True, slots=True)
class Case:
    """One question's grades; `present`: whether a relevant passage is among those graded."""

    question: str
    grades: tuple[graded.Grade, ...]
    present: bool
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """What two thresholds decide over questions.

    `present`: questions with a relevant passage among those graded. `right`: those of them decided correct.
    `discarded`: those of them decided incorrect.
    """

    low: float
    high: float
    counts: Mapping[Action, int]
    present: int
    right: int
    discarded: int

    @property
    def precision(self) -> float | None:
        """Of the questions decided correct, the share with a relevant passage; None where there are none."""
        return self.right / self.counts["correct"] if self.counts["correct"] else None

    @property
    def recall(self) -> float | None:
        """Of the questions with a relevant passage, the share decided correct; None where there are none."""
        return self.right / self.present if self.present else None

    @property
    def lost(self) -> float | None:
        """Of the questions with a relevant passage, the share decided incorrect; None where none has one."""
        return self.discarded / self.present if self.present else None


def known(grade: Grade) -> bool:
    """Whether there is a grade that can be compared."""
    return grade.value is not None and math.isfinite(grade.value)


def bands(grades: Iterable[Grade], low: float, high: float) -> Bands:
    """`grades` by the two thresholds; one on a threshold is above it."""
    ordered = sorted(grades, key=lambda one: -(one.value or 0.0) if known(one) else math.inf)
    values = [(one, one.value if known(one) else None) for one in ordered]
    return Bands(
        tuple(one for one, value in values if value is not None and value >= high),
        tuple(one for one, value in values if value is not None and low <= value < high),
        tuple(one for one, value in values if value is not None and value < min(low, high)),
        tuple(one for one, value in values if value is None),
    )


def at(grades: Iterable[Grade], low: float, high: float, evaluator: str = "") -> Verdict:
    """The verdict of the step that decides by the best grade; BadInput where `low` is above `high`."""
    return graded.verdict(given(grades), low, high, evaluator)


def given(grades: Iterable[Grade]) -> tuple[graded.Grade, ...]:
    """`grades` as the step that decides takes them."""
    return tuple(
        graded.Grade(one.id, one.value, "scored")
        if known(one)
        else graded.Grade(one.id, None, "error" if one.state == "error" else "not scored", one.why)
        for one in grades
    )


def by_best(grading: Grading) -> bool:
    """Whether the step decided by its best grade, so that other thresholds can be tried on it: its decision
    is one of the three, and follows from the grades and thresholds that are stored.
    """
    if grading.decision not in ACTIONS or not grading.low <= grading.high:
        return False
    return at(grading.grades, grading.low, grading.high).decision == grading.decision


def by_mean(grading: Grading) -> MeanRule | None:
    """The rule of a step that decided by the mean of a round, or None where it did not, or where what is
    stored does not give its decision again.
    """
    output, inputs = grading.span.output, grading.span.inputs
    earlier = inputs.get("earlier")
    if not isinstance(output, Mapping) or not isinstance(earlier, list):
        return None
    mean, before = output.get("mean"), earlier[-1] if earlier else None
    threshold, gain, rounds = (inputs.get(name) for name in ("threshold", "gain", "rounds"))
    if not (number(threshold) and number(gain) and number(rounds)):
        return None
    if not all(one is None or number(one) for one in (mean, before)):
        return None
    rule = MeanRule(mean, before, len(earlier) + 1, float(threshold), float(gain), int(rounds))
    return rule if rule.decide(rule.threshold, rule.gain)[0] == grading.decision else None


def number(value: Any) -> TypeGuard[float]:
    """Whether a stored value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def tally(cases: Sequence[Case], low: float, high: float) -> Tally:
    """What the thresholds decide over `cases`."""
    decided = [(case, graded.decide(case.grades, low, high)) for case in cases]
    return Tally(
        low,
        high,
        {action: sum(decision == action for _, decision in decided) for action in ACTIONS},
        sum(case.present for case in cases),
        sum(case.present and decision == "correct" for case, decision in decided),
        sum(case.present and decision == "incorrect" for case, decision in decided),
    )


def sweep(cases: Sequence[Case], edge: Edge, low: float, high: float) -> list[Tally]:
    """Tallies with `edge` from 0 to 1 and the other threshold as given, moved along where it is passed."""
    tried = [step / STEPS for step in range(STEPS + 1)]
    if edge == "high":
        return [tally(cases, min(low, one), one) for one in tried]
    return [tally(cases, one, max(high, one)) for one in tried]
