"""Reads a route's spans the way people ask: what was searched with, graded, reused. Knows no route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.types import RouteResult, Run, Span

WORKING = ("LLM", "CHAIN")  # kinds of step that can turn one text into another


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One step that wrote text to search with; `single` tells a rewritten question from a list of texts."""

    span: Span
    before: str
    after: tuple[str, ...]
    single: bool

    @property
    def changed(self) -> bool:
        """Whether it wrote anything but the text it was given."""
        return self.after != (self.before,)


@dataclass(frozen=True, slots=True)
class Grade:
    """One passage's grade from 0 to 1, or None with the reason."""

    id: str
    value: float | None
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class Grading:
    """One step that graded passages and decided on it."""

    span: Span
    grades: tuple[Grade, ...]
    low: float
    high: float
    decision: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """One strip of a passage with its score, if it has one, and whether it was kept."""

    id: str
    text: str
    score: float | None
    kept: bool


@dataclass(frozen=True, slots=True)
class Stripping:
    """One step that kept of passages what matters; passages in the order it saw them."""

    span: Span
    strips: Mapping[str, tuple[Kept, ...]]

    @property
    def kept(self) -> int:
        """How many strips were kept."""
        return sum(strip.kept for strips in self.strips.values() for strip in strips)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(map(len, self.strips.values()))


@dataclass(frozen=True, slots=True)
class Reuse:
    """How much of a route's time was not spent in this run: milliseconds, by reason."""

    shared_ms: float
    cached_ms: float
    recorded_ms: float
    model: str | None  # whose answers the cached and recorded ones are
    made: str | None  # when the oldest of them was made, ISO 8601


def top(result: RouteResult) -> list[Span]:
    """The steps the route itself called, without the calls below them."""
    return [span for span in result.spans if span.parent is None]


def below(result: RouteResult, span: Span) -> list[Span]:
    """A step and all that was done under it; parents come before their children."""
    within = {span.id}
    for other in result.spans:
        if other.parent in within:
            within.add(other.id)
    return [other for other in result.spans if other.id in within]


def rewritings(result: RouteResult) -> list[Rewriting]:
    """The steps that wrote what was searched with, in order; the answer is none of them."""
    found = []
    for span in top(result):
        before, output = span.inputs.get("text"), span.output
        if span.kind not in WORKING or not isinstance(before, str) or span.hits is not None:
            continue
        if "hits" in span.inputs:
            continue  # written from passages: an answer, not what is searched with
        if isinstance(output, str) and output and output != result.answer:
            found.append(Rewriting(span, before, (output,), True))
        elif isinstance(output, list) and output and all(isinstance(item, str) for item in output):
            found.append(Rewriting(span, before, tuple(output), False))
    return found


def excerpts(result: RouteResult) -> dict[str, str]:
    """What the route kept of passages to answer from, by passage id; {} where it takes them whole."""
    for span in reversed(top(result)):
        kept = span.output.get("excerpts") if isinstance(span.output, Mapping) else None
        if isinstance(kept, Mapping):
            return {str(id): str(text) for id, text in kept.items()}
    return {}


def question(run: Run, result: RouteResult) -> str:
    """What the route took the question to be: rewritten before it first searched; what was written later
    (keywords for another search, say) is no new question.
    """
    searched = next((span.id for span in top(result) if span.hits is not None), None)
    taken = [
        one.after[0]
        for one in rewritings(result)
        if one.single and one.changed and (searched is None or one.span.id < searched)
    ]
    return taken[-1] if taken else run.query.text


def gradings(result: RouteResult) -> list[Grading]:
    """The steps that graded a list of passages; one that did not end has the grades given until then."""
    found = []
    for span in top(result):
        if span.kind != "EVALUATOR":
            continue
        output = span.output if isinstance(span.output, Mapping) else {}
        given = output.get("grades", [one.output for one in below(result, span)[1:]])
        grades = tuple(_grade(g) for g in given if isinstance(g, Mapping) and "grade" in g)
        if grades:
            low, high = (_number(output.get(edge, span.inputs.get(edge))) for edge in ("low", "high"))
            found.append(
                Grading(
                    span,
                    grades,
                    low or 0.0,
                    1.0 if high is None else high,
                    str(output.get("decision", "")),
                    str(output.get("why", "")),
                )
            )
    return found


def strippings(result: RouteResult) -> list[Stripping]:
    """The steps that cut passages into strips and kept some: their output lists id, text, score and kept."""
    found = []
    for span in top(result):
        listed = span.output if isinstance(span.output, list | tuple) else ()
        strips: dict[str, list[Kept]] = {}
        for one in listed:
            if isinstance(one, Mapping) and isinstance(one.get("kept"), bool) and "text" in one:
                kept = Kept(str(one.get("id")), str(one["text"]), _number(one.get("score")), one["kept"])
                strips.setdefault(kept.id, []).append(kept)
        if strips:
            found.append(Stripping(span, {id: tuple(some) for id, some in strips.items()}))
    return found


def _grade(given: Mapping[str, Any]) -> Grade:
    state, why = str(given.get("state", "")), str(given.get("why", ""))
    return Grade(str(given.get("id")), _number(given.get("grade")), state, why)


def source(result: RouteResult, span: Span) -> str | None:
    """Where a step's work came from, its calls included: "recording", "cache", or None for work done now."""
    found = {one.cached for one in below(result, span)}
    return next((name for name in ("recording", "cache") if name in found), None)


def reuse(run: Run, result: RouteResult) -> Reuse:
    """What of the route's time was taken over from other routes, the cache, and the recordings."""
    shared = cached = recorded = 0.0
    for span in top(result):
        came_from = source(result, span)
        if came_from == "recording":
            recorded += span.ms
        elif came_from == "cache":
            cached += span.ms
        elif span.shared_with:
            shared += span.ms
    made = [str(span.inputs["made"]) for span in result.spans if span.inputs.get("made")]
    told = run.settings.get("llm") if cached or recorded else None
    return Reuse(shared, cached, recorded, None if told is None else str(told), min(made, default=None))


def title_of(run: Run, id: str) -> str:
    """A passage's title, else its document's id; its own id where the run does not hold it."""
    passage = run.passages.get(id)
    return passage.title or passage.doc_id if passage else id


def worked(run: Run) -> list[RouteResult]:
    """The routes that have a ranking to compare."""
    return [result for result in run.results if result.status == "ok"]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def asked_again(result: RouteResult, span: Span) -> str | None:
    """The first reply to a step, where it could not be used and the model was asked once more."""
    calls = [one for one in below(result, span)[1:] if one.kind == "LLM"]
    again = any(str(child.inputs.get("prompt", "")).endswith("/firmer") for child in calls)
    return str(calls[0].output) if again else None
