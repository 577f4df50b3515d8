"""Reads answers, their drafts and the decisions on the way off a route's spans; knows no route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.analysis.run_view import Recorded, below, recorded
from core.backends.prompting.citations import markers
from core.domain.outputs import Critique, Decided, DraftChoice, Reply, Selection, Written
from core.domain.types import RouteResult, Span
from core.steps.decisions import FORCED


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer, and the passage that each right marker of it means."""

    written: Written
    cited: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Writing:
    """A route's drafts in order, which of them (from 1) was kept, and why writing ended."""

    drafts: tuple[Recorded[Critique], ...]
    kept: int | None
    why: str


def checked(result: RouteResult) -> Checked | None:
    """Return the route's answer, or None if it has none."""
    if result.answer is None:
        return None
    wrote = [span for span in result.spans if span.id == result.answer_span]
    found = next((one.output for one in recorded(wrote, Written)), Written(""))
    own = replace(found, text=result.answer, abstained=result.abstained)
    right = [number for number in markers(own.text) if number not in own.wrong]
    return Checked(own, dict(zip(right, result.citations, strict=False)))  # both in order of first mention


def writing(result: RouteResult) -> Writing | None:
    """Return the route's draft and its judgement, or None if it judged no draft."""
    drafts, choices = recorded(result.spans, Critique), recorded(result.spans, DraftChoice)
    if not drafts:
        return None
    chosen = choices[-1].output if choices else None
    return Writing(tuple(drafts), chosen.kept if chosen else None, chosen.why if chosen else "")


def decisions(result: RouteResult) -> list[Recorded[Decided | Selection]]:
    """Return the route's decisions in order; a step inside a step that decided is left out."""
    found: list[Recorded[Decided | Selection]] = []
    inside: set[int] = set()
    for span in result.spans:
        decided = span.output
        if span.id not in inside and isinstance(decided, Decided | Selection) and decided.decision:
            found.append(Recorded(span, decided))
            inside |= {one.id for one in below(result, span)}
    return found


def forced(span: Span) -> str:
    """Return a sentence on the decision that the step took by itself if a request forced another; else ""."""
    was = span.attributes.get(FORCED)
    return f"Forced by an audit: on its own the step decided “{was}”." if was is not None else ""


def warned(result: RouteResult) -> list[tuple[Span, dict[str, list[str]]]]:
    """Return the steps that showed the model a passage worded like an instruction: what it looks like, by the
    passage's number.
    """
    found = []
    for span in result.spans:
        told = span.attributes.get("instructions")
        if isinstance(told, Mapping) and told:
            lists = {str(n): what for n, what in told.items() if isinstance(what, list)}
            found.append((span, {n: [str(item) for item in what] for n, what in lists.items()}))
    return found


def being_written(spans: Sequence[Span]) -> str:
    """Return the text that a model is writing right now, or ""."""
    found = [one.output.text for one in recorded(spans, Reply) if one.output.streaming]
    return found[-1] if found else ""
