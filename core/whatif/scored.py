"""What another threshold would have decided where a step holds one score, or a score a piece, against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.reading import Kept, Stripping
from core.reading_ways import ways
from core.steps.refine import keep
from core.types import RouteResult, Span
from core.whatif.grading import number

SCORES = ("score", "confidence", "probability")  # where the output of a step that decides tells its score
ENOUGH = ("answer", "abstain")  # what a step does that copies sentences if its evidence reaches the floor


@dataclass(frozen=True, slots=True)
class Gate:
    """One score against one threshold: from it on the step goes the first of `ways`, below it the second."""

    result: RouteResult
    span: Span
    score: float
    threshold: float
    ways: tuple[str, str]
    decision: str

    def decide(self, threshold: float) -> str:
        """Which way it goes with another threshold."""
        return self.ways[0] if self.score >= threshold else self.ways[1]


@dataclass(frozen=True, slots=True)
class Near:
    """A step that dropped the passages whose score is below a floor; (passage id, score) as it saw them."""

    span: Span
    scores: tuple[tuple[str, float], ...]
    floor: float

    def kept(self, floor: float) -> tuple[str, ...]:
        """The passages with at least `floor`."""
        return tuple(id for id, score in self.scores if score >= floor)


def gates(result: RouteResult) -> list[Gate]:
    """The route's decisions by one score; those that their own numbers do not give again are left out."""
    found = []
    for span in result.spans:
        read = _copied(span) if "evidence" in span.inputs else _decided(span)
        if read is not None:
            gate = Gate(result, span, *read)
            if gate.decide(gate.threshold) == gate.decision:
                found.append(gate)
    return found


def _decided(span: Span) -> tuple[float, float, tuple[str, str], str] | None:
    output = span.output
    if not isinstance(output, Mapping) or not isinstance(output.get("decision"), str):
        return None
    score = next((output[name] for name in SCORES if number(output.get(name))), None)
    threshold = output.get("threshold", span.inputs.get("threshold"))
    both = ways(output)
    if score is None or not number(threshold) or len(both) != 2:
        return None
    if output.get("by") == "no answer":  # it searches whatever the threshold
        return None
    return float(score), float(threshold), (both[0], both[1]), output["decision"]


def _copied(span: Span) -> tuple[float, float, tuple[str, str], str] | None:
    score, floor = span.inputs.get("evidence"), span.inputs.get("floor")
    if not number(score) or not number(floor) or not isinstance(span.output, str):
        return None
    return float(score), float(floor), ENOUGH, ENOUGH["note" in span.inputs]


def nears(result: RouteResult) -> list[Near]:
    """The steps that dropped passages by a floor: their inputs give each score, their hits what was kept."""
    found = []
    for span in result.spans:
        given, floor = span.inputs.get("cosines"), span.inputs.get("floor")
        if isinstance(given, Mapping) and given and number(floor) and all(map(number, given.values())):
            near = Near(span, tuple((str(id), float(score)) for id, score in given.items()), float(floor))
            if set(near.kept(near.floor)) == {id for id, _ in span.hits or ()}:
                found.append(near)
    return found


def floor_of(step: Stripping) -> float | None:
    """The floor that strips were held against; None where none was, or where it does not give again what was
    kept.
    """
    floor = step.span.inputs.get("floor")
    if not number(floor):
        return None
    same = refloored(step, float(floor))
    return float(floor) if same is not None and same.strips == step.strips else None


def refloored(step: Stripping, floor: float) -> Stripping | None:
    """`step` with what another floor keeps; None where a strip has no score."""
    flat = [(id, strip) for id, strips in step.strips.items() for strip in strips]
    scored = [(id, strip.score) for id, strip in flat if strip.score is not None and number(strip.score)]
    if len(scored) < len(flat):
        return None
    anew: dict[str, list[Kept]] = {}
    for (id, strip), kept in zip(flat, keep(scored, floor), strict=True):
        anew.setdefault(id, []).append(Kept(strip.id, strip.text, strip.score, kept))
    return Stripping(step.span, {id: tuple(strips) for id, strips in anew.items()})
