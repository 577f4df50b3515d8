"""Reads the drafts of an answer off a route's spans, with what was said of each; knows no route.

A draft is what a step decided on: an output {"draft": text, "decision", "why", "claims": [{"claim",
"supported", "passage"}], "share", "feedback", "changes"}; all but the first two may be missing, as a stored
run may come from anywhere. A later step with "kept" tells which draft, from 1, became the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.reading import below
from core.types import RouteResult, Span

CHANGES = ("kept", "changed", "added", "dropped")


@dataclass(frozen=True, slots=True)
class Criticised:
    """One claim of a draft; `supported` is None where that was not told, `passage` a number from 1."""

    claim: str
    supported: bool | None
    passage: int | None


@dataclass(frozen=True, slots=True)
class Written:
    """One draft with its critique and what was decided; `changes` maps a word of `CHANGES` to claims."""

    span: Span
    text: str
    claims: tuple[Criticised, ...]
    share: float | None
    feedback: str
    changes: Mapping[str, tuple[str, ...]]
    decision: str
    why: str


@dataclass(frozen=True, slots=True)
class Writing:
    """A route's drafts in order, which of them (from 1) was kept, and why writing ended."""

    drafts: tuple[Written, ...]
    kept: int | None
    why: str


def writing(result: RouteResult) -> Writing | None:
    """What the route wrote and judged, or None if it judged no draft."""
    drafts: list[Written] = []
    kept, why = None, ""
    inside: set[int] = set()
    for span in result.spans:
        output = span.output
        if span.id in inside or not isinstance(output, Mapping):
            continue
        if isinstance(output.get("draft"), str):
            drafts.append(_written(span, output))
            inside |= {one.id for one in below(result, span)}
        elif drafts and isinstance(output.get("kept"), int):
            kept, why = output["kept"], str(output.get("why", ""))
    return Writing(tuple(drafts), kept, why) if drafts else None


def _written(span: Span, output: Mapping[str, Any]) -> Written:
    share, changes = output.get("share"), output.get("changes")
    return Written(
        span,
        output["draft"],
        tuple(_claim(one) for one in _list(output.get("claims")) if isinstance(one, Mapping)),
        float(share) if isinstance(share, int | float) and not isinstance(share, bool) else None,
        str(output.get("feedback") or ""),
        {name: tuple(map(str, _list(changes.get(name)))) for name in CHANGES}
        if isinstance(changes, Mapping)
        else {},
        str(output.get("decision", "")),
        str(output.get("why", "")),
    )


def _claim(given: Mapping[str, Any]) -> Criticised:
    supported, passage = given.get("supported"), given.get("passage")
    return Criticised(
        str(given.get("claim", "")),
        supported if isinstance(supported, bool) else None,
        passage if isinstance(passage, int) and not isinstance(passage, bool) else None,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
