"""Reads a route's spans the way people ask: what was searched with, graded, reused. Knows no route."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from core.domain.outputs import (
    External,
    Grading,
    Output,
    Pass,
    PassageGrade,
    Reply,
    Rewrite,
    SentenceFilter,
    ShortAnswer,
    WebGrades,
    Written,
    document,
)
from core.domain.types import Link, RouteResult, Run, Span

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded(Generic[T]):
    """A step's result, with the step."""

    span: Span
    output: T


@dataclass(frozen=True, slots=True)
class Reuse:
    """The milliseconds of a route's time that were not spent in this run, by reason."""

    shared_ms: float
    cached_ms: float
    recorded_ms: float
    model: str | None  # whose answers the cached and recorded ones are
    made: str | None  # when the oldest of them was made, ISO 8601


def top(result: RouteResult) -> list[Span]:
    """Return the steps the route itself called, without the calls below them."""
    return [span for span in result.spans if span.parent is None]


def below(result: RouteResult, span: Span) -> list[Span]:
    """Return a step and all that was done under it; parents come before their children."""
    within = {span.id}
    for other in result.spans:
        if other.parent in within:
            within.add(other.id)
    return [other for other in result.spans if other.id in within]


def depths(spans: Iterable[Span]) -> dict[int, int]:
    """Return how deep each span is below the route's own steps, which are at 0; parents come first."""
    found: dict[int, int] = {}
    for span in spans:
        found[span.id] = found.get(span.parent, -1) + 1 if span.parent is not None else 0
    return found


def recorded(spans: Iterable[Span], kind: type[T]) -> list[Recorded[T]]:
    """Return the steps that came to an output of `kind`, in order."""
    return [Recorded(span, span.output) for span in spans if isinstance(span.output, kind)]


def gradings(result: RouteResult) -> list[Recorded[Grading]]:
    """Return the steps that graded a list of passages; one that did not end has the grades given until
    then.
    """
    found = []
    for span in top(result):
        if isinstance(span.output, Grading):
            if span.output.grades:
                found.append(Recorded(span, span.output))
        elif span.kind == "EVALUATOR" and not isinstance(span.output, WebGrades):
            grades = tuple(one.output for one in recorded(below(result, span)[1:], PassageGrade))
            if grades:
                low, high = _edge(span, "low", 0.0), _edge(span, "high", 1.0)
                found.append(Recorded(span, Grading(grades, low, high, "", "", ())))
    return found


def strippings(result: RouteResult) -> list[Recorded[SentenceFilter]]:
    """Return the steps that cut passages into pieces and kept some."""
    return [one for one in recorded(top(result), SentenceFilter) if one.output.sentences]


def source(result: RouteResult, span: Span) -> str | None:
    """Return the source of a step's work, its calls included: "recording", "cache", or None for work done
    now.
    """
    found = {one.cached for one in below(result, span)}
    return next((name for name in ("recording", "cache") if name in found), None)


def reuse(run: Run, result: RouteResult) -> Reuse:
    """Return the part of the route's time that came from other routes, the cache and recordings."""
    shared = cached = recorded_ = 0.0
    for span in top(result):
        came_from = source(result, span)
        if isinstance(span.output, External):
            continue  # no model's: `core.analysis.external` says when its reply was made
        if came_from == "recording":
            recorded_ += span.ms
        elif came_from == "cache":
            cached += span.ms
        elif span.shared_with:
            shared += span.ms
    made = [one.output.made for one in recorded(result.spans, Reply) if one.output.made]
    told = run.settings.get("llm") if cached or recorded_ else None
    return Reuse(shared, cached, recorded_, None if told is None else str(told), min(made, default=None))


def title_of(run: Run, id: str) -> str:
    """Return a passage's title, else its document's id; its own id where the run does not hold it."""
    passage = run.passages.get(id)
    return passage.title or passage.doc_id if passage else id


def worked(run: Run) -> list[RouteResult]:
    """Return the routes that have a ranking to compare."""
    return [result for result in run.results if result.status == "ok"]


def model_failures(run: Run) -> list[RouteResult]:
    """Return the routes without a ranking, or an answer that was asked for, because a model call failed."""
    return [
        result
        for result in run.results
        if (result.status not in ("ok", "cancelled") or result.answer_error)
        and any(span.kind == "LLM" and span.error for span in result.spans)
    ]


def asked_again(result: RouteResult, span: Span) -> str | None:
    """Return the first reply to a step, if it could not be used and the model was asked once more."""
    calls = [one for one in below(result, span)[1:] if one.kind == "LLM"]
    for first, again in pairwise(calls):
        if again.args.get("attempt") == 2 and isinstance(first.output, Reply):
            return first.output.text
    return None


def texts(output: Output) -> tuple[str, ...]:
    """Return the texts that a step wrote, or () if it wrote none."""
    match output:
        case Reply() | Written() | ShortAnswer():
            return (output.text,)
        case Rewrite():
            return output.texts
        case Pass(value=str(text)):
            return (text,)
    return ()


def facts(output: Output) -> dict[str, Any]:
    """Return all facts of an output, as plain JSON by name; {} for nothing."""
    told = document(output)
    del told["type"]
    return told


def describe(link: Link, spans: Sequence[Span]) -> tuple[str, str]:
    """Describe the input of a step: the argument and its origin; "list 2", "search BM25, ranks 1 to 20".
    `spans` are those of its route; a step is numbered where several have its name.
    """
    name, place, rest = link.arg.partition("[")
    at, _, rest = rest.partition("]")
    label = f"{name.removesuffix('s')} {int(at) + 1}{rest}" if place and at.isdecimal() else link.arg
    made = next((span for span in spans if span.id == link.span), None)
    if made is None:
        where = (
            "made by the route's own code" if link.span is None else f"step {link.span}, which is not stored"
        )
        return label, where
    alone = sum(span.name == made.name for span in spans) == 1
    step = made.name if alone else f"{made.name} (step {made.id})"
    if made.hits is None:
        return label, step
    first, last = link.start + 1, link.start + link.size
    ranks = (
        "no passage" if not link.size else f"rank {first}" if link.size == 1 else f"ranks {first} to {last}"
    )
    return label, f"{step}, {ranks}"


def _edge(span: Span, name: str, default: float) -> float:
    """Return a threshold among a step's arguments, which are any JSON in a run that was imported."""
    value = span.args.get(name)
    return float(value) if isinstance(value, int | float) else default
