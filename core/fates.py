"""What spans tell of why a passage was left out: grades, cosines, strips; and what searches searched with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.flow import SEARCHES
from core.reading import gradings, strippings, top
from core.types import RouteResult, Span

Told = tuple[Span, str]  # a step and what it did, a clause without a full stop


def searched_with(result: RouteResult) -> dict[int, str]:
    """What each search searched with, in words, by span; a vector belongs to the text embedded last."""
    asked: dict[int, str] = {}
    embedded: str | None = None
    for span in result.spans:
        text = span.inputs.get("text")
        if span.kind == "EMBEDDING" and (span.parent is None or embedded is None):
            embedded = _embedded(span) or embedded
        elif span.kind in SEARCHES:
            said = f"“{_cut(text)}”" if isinstance(text, str) else embedded
            if said:
                asked[span.id] = said
    return asked


def _embedded(span: Span) -> str | None:
    text, texts = span.inputs.get("text"), as_list(span.inputs.get("texts"))
    if isinstance(text, str):
        return f"“{_cut(text)}”" + (" and the turns recalled" if "recalled" in span.inputs else "")
    if texts:
        own = " and the question" if span.inputs.get("question") else ""
        return f"the mean of {len(texts)} written text{'s' * (len(texts) > 1)}{own}"
    return None


def low_grade(result: RouteResult, id: str) -> Told | None:
    """The last grading that gave a passage less than its lower threshold."""
    for grading in reversed(gradings(result)):
        one = next((grade for grade in grading.grades if grade.id == id), None)
        if one is not None and one.value is not None and one.value < grading.low:
            return grading.span, f"graded {one.value:.2f} by “{grading.span.name}”, below {grading.low:.2f}"
    return None


def discarded(result: RouteResult, id: str) -> Told | None:
    """The grading for which all that was found was given up, or this passage."""
    low = low_grade(result, id)
    for grading in reversed(gradings(result)):
        if grading.decision == "incorrect":
            best = max((one.value for one in grading.grades if one.value is not None), default=None)
            told = "" if best is None else f": its best grade, {best:.2f}, is below {grading.low:.2f}"
            own = f"{low[1]}" if low else f"“{grading.span.name}” did not grade it"
            given_up = "all that was found was discarded"
            return grading.span, f"{own}, and {given_up}{'' if low else told}"
    return (low[0], f"{low[1]}, and it was left out") if low else None


def compressed(result: RouteResult, id: str) -> Told | None:
    """The step that kept nothing of a passage; None where the prompt had it all the same."""
    for span in reversed(top(result)):
        if id in as_mapping(as_mapping(span.output).get("excerpts")):
            return None
    for span in result.spans:
        cosine, floor = as_mapping(span.inputs.get("cosines")).get(id), span.inputs.get("floor")
        if isinstance(cosine, float | int) and isinstance(floor, float | int) and cosine < floor:
            return span, f"“{span.name}” dropped it: its cosine is {cosine:.2f}, and {floor:.2f} is needed"
    for stripping in strippings(result):
        strips = stripping.strips.get(id, ())
        if strips and not any(strip.kept for strip in strips):
            return stripping.span, f"“{stripping.span.name}” kept none of its {len(strips)} pieces"
    return None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one: an imported span may hold anything."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """`value` as a list if it is one, else an empty one."""
    return list(value) if isinstance(value, list | tuple) else []


def _cut(text: str, limit: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
