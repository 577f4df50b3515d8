"""The labels of a question through the steps of a route: which each step kept and which it lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from core.analysis.diagnosis import furthest
from core.analysis.lineage import is_search
from core.analysis.loss_evidence import compressed
from core.analysis.passage_trace import PassageTrace
from core.domain.relevance import RelevantLabel

Reading = Literal["cited", "read", "cut", "not read", "not retrieved"]
ORDER: tuple[Reading, ...] = get_args(Reading)  # the furthest first


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One step of a route's line: the ids of the labels that are left after it, and of those it lost."""

    name: str
    # kind of the step; "" for the end of the route and for what its answer did
    kind: str
    present: tuple[str, ...]
    lost: tuple[str, ...]


def flow(funnel: PassageTrace, wanted: Sequence[RelevantLabel], depth: int) -> tuple[FlowStep, ...]:
    """Return the steps of the list that became the final ranking, its top `depth`, and, if an answer was
    written, the prompt and the citations. All labels are there before the first step.

    Neighbouring searches are one step, which has what any of them found. A label that is not in the top is
    lost at the step that its fate blames, though a list after that step may still have it further down; one
    that a later list brings back is not lost.
    """
    every = {label.id for label in wanted}
    top = _of(wanted, {id for id, rank in funnel.flow.final.items() if rank <= depth})
    fates = {one.id: funnel.fate(furthest(funnel, one), depth) for one in wanted if one.id not in top}
    blamed = {id: fate.step.id for id, fate in fates.items() if fate.step is not None}
    found: list[tuple[str, str, set[str]]] = []
    done: set[int] = set()
    for searching, spans in groupby(funnel.flow.line, key=is_search):
        some = list(spans)
        for group in [some] if searching else [[one] for one in some]:
            done |= {span.id for span in group}
            have = _of(wanted, {id for span in group for id in funnel.flow.places(span)})
            have -= {id for id, step in blamed.items() if step in done}
            found.append((" + ".join(dict.fromkeys(one.name for one in group)), group[0].kind, have))
    later = top
    for n, (name, kind, have) in reversed([*enumerate(found)]):  # a list may lose what another brings back
        later = have | later
        found[n] = name, kind, later
    found.append((f"top {depth}", "", top))
    if funnel.shown is not None:
        found.append(("prompt", "", _of(wanted, {*funnel.shown[0]})))
        found.append(("cited", "", _of(wanted, {*funnel.result.citations})))
    steps: list[FlowStep] = []
    before = every
    for name, kind, have in found:
        steps.append(FlowStep(name, kind, _ordered(wanted, have), _ordered(wanted, before - have)))
        before = have
    return tuple(steps)


def read(funnel: PassageTrace, label: RelevantLabel) -> Reading:
    """Return how far a label came towards the route's answer."""
    if any(id in funnel.result.citations for id in label.passages):
        return "cited"
    if funnel.shown is not None and any(id in funnel.shown[0] for id in label.passages):
        return "read"
    if any(compressed(funnel.result, id) for id in label.passages):
        return "cut"
    lists: list[Mapping[str, int]] = [funnel.flow.final, *map(funnel.flow.places, funnel.flow.lists)]
    return "not read" if any(id in one for one in lists for id in label.passages) else "not retrieved"


def _of(wanted: Sequence[RelevantLabel], passages: set[str]) -> set[str]:
    return {label.id for label in wanted if not passages.isdisjoint(label.passages)}


def _ordered(wanted: Sequence[RelevantLabel], ids: set[str]) -> tuple[str, ...]:
    return tuple(label.id for label in wanted if label.id in ids)
