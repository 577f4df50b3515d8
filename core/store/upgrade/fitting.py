"""How a list is known to be what an earlier step was given: by what the step stored of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.domain.types import Link, Scored
from core.store.upgrade.earlier import Earlier, ids
from core.store.upgrade.read import number, rows, table, texts

Condition = Callable[[Scored], bool]  # whether a part of a list can be what a step was given
RERANKS = (
    "rerank by BM25, cosine and MaxSim",
    "rerank by the model's grades",
    "rerank with a model of pairs",
)
ANSWERS = ("write answer", "copy the best sentences")
STRIPS = ("keep the strips that matter", "ask for the sentences that help")


def condition_of(span: Earlier, arg: str, size: int, found: list[Link]) -> Condition | None:
    """How a list is known to be what the step was given; None where nothing of it was stored."""
    inputs, into, output = span.inputs, ids(span.hits), table(span.output)
    if span.name in RERANKS:
        moved = sorted(rows(inputs.get("order")), key=lambda one: number(table(one).get("was")) or 0)
        known = [(table(one).get("id"), table(one).get("first score")) for one in moved]
        return lambda part: list(part) == known
    if span.name == "append the rest":
        if arg == "first":
            return lambda part: ids(part) == into[:size]
        first = into[: found[0].size if found else 0]
        return lambda part: tuple(id for id in ids(part) if id not in first) == into[len(first) :]
    if span.name == "collect what is new":
        if arg == "collected":
            return lambda part: ids(part) == into[:size]
        each, new = number(inputs.get("each")), tuple(texts(inputs.get("new")))
        had = into[: len(into) - len(new)]
        return lambda part: (
            tuple(id for id in ids(part)[: int(each or 0)] if id not in had)[: len(new)] == new
        )
    if span.name == "drop near-duplicates":
        dropped = table(inputs.get("dropped"))
        return lambda part: tuple(id for id in ids(part) if id not in dropped) == into
    if span.name in ANSWERS:
        shown = sorted(texts(inputs.get("shown")))
        return (lambda part: sorted(ids(part)) == shown) if shown else None
    if span.name in STRIPS:
        cut = tuple(dict.fromkeys(table(one).get("id") for one in rows(span.output)))
        return (lambda part: tuple(id for id in ids(part) if id in cut) == cut) if cut else None
    best = number(inputs.get("best")) if arg == "found" else number(output.get("nearest"))
    if best is not None and arg in ("found", "dense"):
        return lambda part: part[0][1] == best
    known_ids = _named_ids(span)
    if known_ids:
        return lambda part: ids(part) == known_ids
    if into and (len(into) == size or span.name == "order by marginal relevance"):
        return lambda part: set(ids(part)) == set(into[:size])
    return _alike(span) if into and span.ranks else None


def _alike(span: Earlier) -> Condition:
    """For a step that is not known: a list that has what it made, or shares half with it."""
    into = set(ids(span.hits))

    def test(part: Scored) -> bool:
        own = set(ids(part))
        return own <= into or into <= own or 2 * len(own & into) >= min(len(own), len(into))

    return test


def _named_ids(span: Earlier) -> tuple[Any, ...]:
    """The passages that a step was given, in their order, where something of each was stored."""
    output, inputs = table(span.output), span.inputs
    graded = output.get("grades") or table(inputs.get("verdict")).get("grades")
    if graded is None and isinstance(span.output, list):
        graded = span.output
    if isinstance(graded, list) and graded:
        return tuple(table(one).get("id", table(one).get("passage")) for one in graded)
    return tuple(table(inputs.get("cosines")) or table(inputs.get("attention")))
