"""All lists of a run that had a passage: the searches that could have found it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.analysis.passage_trace import PassageTrace
from core.domain.types import Span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A list somewhere in a run that had a passage."""

    route: str
    title: str
    span: Span
    rank: int
    text: str | None  # searched with, where the step is a search


def held(funnels: Iterable[PassageTrace], id: str) -> list[Occurrence]:
    """Return each list of a run's routes that has the passage, best rank first; a shared list comes once."""
    found: dict[object, Occurrence] = {}
    for funnel in funnels:
        for stage in funnel.stages(id):
            if stage.rank is not None:
                text = funnel.asked(stage.span)
                same = (stage.span.name, text, stage.span.hits)
                result = funnel.result
                found.setdefault(same, Occurrence(result.route, result.title, stage.span, stage.rank, text))
    return sorted(found.values(), key=lambda one: one.rank)
