"""Reads answers and decisions off a route's spans; knows no route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.reading import below
from core.steps.cite import markers
from core.types import RouteResult, Span


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer with what its markers resolve to: `cited` gives the passage of each right number."""

    text: str
    abstained: bool
    copied: bool  # its words stand in the passages; no model wrote them
    cited: Mapping[int, str]
    wrong: tuple[int, ...]
    uncited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a route: what was decided, and the sentence that says by which score or reason."""

    span: Span
    decision: str
    why: str


def checked(result: RouteResult) -> Checked | None:
    """The route's answer, or None if it has none."""
    if result.answer is None:
        return None
    wrong: tuple[int, ...] = ()
    uncited: tuple[str, ...] = ()
    copied = False
    for span in result.spans:
        if span.output == result.answer and "hits" in span.inputs:
            wrong = tuple(n for n in _list(span.inputs.get("wrong citations")) if isinstance(n, int))
            uncited = tuple(
                s for s in _list(span.inputs.get("sentences without citation")) if isinstance(s, str)
            )
            copied = span.kind == "CHAIN"
    right = [number for number in markers(result.answer) if number not in wrong]
    cited = dict(zip(right, result.citations, strict=False))  # both in order of first mention
    return Checked(result.answer, result.abstained, copied, cited, wrong, uncited)


def decisions(result: RouteResult) -> list[Decision]:
    """What the route decided, in order; a step inside a step that decided is not told twice."""
    found: list[Decision] = []
    inside: set[int] = set()
    for span in result.spans:
        output = span.output
        if (
            span.id in inside
            or not isinstance(output, Mapping)
            or not isinstance(output.get("decision"), str)
        ):
            continue
        why = output.get("why")
        found.append(Decision(span, output["decision"], why if isinstance(why, str) else ""))
        inside |= {one.id for one in below(result, span)}
    return found


def warned(result: RouteResult) -> list[tuple[Span, dict[str, list[str]]]]:
    """The steps that showed the model a passage worded like an instruction: what it looks like, by the
    passage's number.
    """
    found = []
    for span in result.spans:
        told = span.inputs.get("instructions")
        if isinstance(told, Mapping) and told:
            found.append((span, {str(n): [str(item) for item in _list(what)] for n, what in told.items()}))
    return found


def being_written(spans: Sequence[Span]) -> str:
    """The text that a model is writing right now, or ""."""
    last = next((span for span in reversed(spans) if span.inputs.get("streamed")), None)
    return last.output if last is not None and isinstance(last.output, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
