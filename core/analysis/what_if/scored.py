"""The decisions of another threshold in steps that compare one score, or one score per piece, with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from core.analysis.run_view import Recorded, recorded
from core.domain.outputs import Decision, Selection, SentenceFilter, Written
from core.domain.types import RouteResult, Span
from core.steps.refine import keep

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
    found = [gate for span in result.spans if (gate := _gate(result, span)) is not None]
    return [one for one in found if isfinite(one.score) and one.decide(one.threshold) == one.decision]


def _gate(result: RouteResult, span: Span) -> Gate | None:
    one = span.output
    if isinstance(one, Decision) and one.score is not None and one.threshold is not None and one.ways[1:]:
        return Gate(result, span, one.score, one.threshold, (one.ways[0], one.ways[1]), one.decision)
    if isinstance(one, Written) and one.evidence is not None and one.floor is not None:
        return Gate(result, span, one.evidence, one.floor, ENOUGH, ENOUGH[one.abstained], "floor")
    return None


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
