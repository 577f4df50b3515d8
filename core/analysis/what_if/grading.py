"""The decisions that other thresholds would have made on recorded grades, for one question and over many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite

from core.analysis.run_view import Recorded, recorded
from core.domain.outputs import Decision, Grading, PassageGrade, Round, Selection, SentenceFilter, Written
from core.domain.types import RouteResult, Span
from core.steps import grade as graded
from core.steps.refine import keep
from core.steps.reflect import Next, Reason, next_round


@dataclass(frozen=True, slots=True)
class Bands:
    """Grades by band: `high` or more, `low` or more but below `high`, below `low`, and missing ones, which
    neither pass nor fail. Each best first.
    """

    above: tuple[PassageGrade, ...]
    between: tuple[PassageGrade, ...]
    below: tuple[PassageGrade, ...]
    without: tuple[PassageGrade, ...]


def known(grade: PassageGrade) -> float | None:
    """Return the grade, if there is one that can be compared."""
    return grade.grade if grade.grade is not None and math.isfinite(grade.grade) else None


def bands(grades: Iterable[PassageGrade], low: float, high: float) -> Bands:
    """`grades` by the two thresholds; one on a threshold is above it."""
    bands: tuple[list[PassageGrade], ...] = ([], [], [], [])
    for one in sorted(grades, key=lambda one: -(known(one) or 0.0)):
        value = known(one)
        at = 3 if value is None else 0 if value >= high else 1 if value >= low else 2
        bands[at].append(one)
    return Bands(*map(tuple, bands))


def at(grades: Iterable[PassageGrade], low: float, high: float, evaluator: str = "") -> Grading:
    """Return the verdict of the step that decides by the best grade. Raises BadInput if `low` is above
    `high`.
    """
    return graded.verdict(finite(grades), low, high, evaluator)


def finite(grades: Iterable[PassageGrade]) -> tuple[PassageGrade, ...]:
    """Return `grades`, with None for each grade that cannot be compared."""
    return tuple(replace(one, grade=known(one)) for one in grades)


def by_best(grading: Grading) -> bool:
    """Return whether the step decided by its best grade, and the stored grades reproduce its decision, so
    that other thresholds can be tried on it.
    """
    if grading.round is not None or not grading.low <= grading.high:
        return False
    return at(grading.grades, grading.low, grading.high).decision == grading.decision


def by_mean(grading: Grading) -> Round | None:
    """Return the round of a step that decided by its mean, or None if it did not, or where what is stored
    does not give its decision again.
    """
    judged = grading.round
    if judged is None or again(judged, judged.threshold, judged.gain)[0] != grading.decision:
        return None
    return judged


def again(judged: Round, threshold: float, gain: float) -> tuple[Next, Reason | None]:
    """Return the decision of a round with another threshold and another least gain."""
    return next_round(judged.mean, judged.before, judged.number, threshold, gain, judged.rounds)


ENOUGH = ("answer", "abstain")  # what a step does that copies sentences if its evidence reaches the floor


@dataclass(frozen=True, slots=True)
class Gate:
    """One score against one threshold, the argument `name` of the step: from it on the step goes the first of
    `ways`, below it the second.
    """

    result: RouteResult
    span: Span
    score: float
    threshold: float
    ways: tuple[str, str]
    decision: str
    name: str = "threshold"

    def decide(self, threshold: float) -> str:
        """Return the way taken with another threshold."""
        return self.ways[0] if self.score >= threshold else self.ways[1]


def gates(result: RouteResult) -> list[Gate]:
    """Return the route's decisions by one score; those that their own numbers do not give again are left
    out.
    """
    found = []
    for span in result.spans:
        one = span.output
        if isinstance(one, Decision) and one.score is not None and one.threshold is not None and one.ways[1:]:
            ways = one.ways[0], one.ways[1]
            found.append(Gate(result, span, one.score, one.threshold, ways, one.decision))
        elif isinstance(one, Written) and one.evidence is not None and one.floor is not None:
            decision = ENOUGH[one.abstained]
            found.append(Gate(result, span, one.evidence, one.floor, ENOUGH, decision, "floor"))
    return [one for one in found if isfinite(one.score) and one.decide(one.threshold) == one.decision]


def nears(result: RouteResult) -> list[Recorded[Selection]]:
    """Return the steps that dropped the passages whose cosine is below a floor."""
    return [
        one
        for one in recorded(result.spans, Selection)
        if one.output.floor is not None and one.output.cosines
    ]


def reaching(near: Selection, floor: float | None) -> tuple[str, ...]:
    """Return the passages with at least `floor`."""
    return tuple(id for id, score in near.cosines.items() if floor is None or score >= floor)


def floor_of(step: SentenceFilter) -> float | None:
    """Return the floor that pieces were compared with, or None if there was no floor or it does not reproduce
    which pieces passed.
    """
    return step.floor if step.floor is not None and refloored(step, step.floor) == step else None


def refloored(step: SentenceFilter, floor: float) -> SentenceFilter | None:
    """Return `step` with the pieces that another floor keeps, or None if a piece has no score."""
    scored = [(one.id, one.score) for one in step.sentences if one.score is not None]
    if len(scored) < len(step.sentences):
        return None
    pairs = zip(step.sentences, keep(scored, floor), strict=True)
    return replace(step, sentences=tuple(replace(one, kept=kept) for one, kept in pairs))
