"""Walks over a graph of entities, as any route recorded them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.domain.outputs import Entities, Search, Walk
from core.domain.types import RouteResult, Span


@dataclass(frozen=True, slots=True)
class Walked:
    """A step that walked, what it came to, and the entities that it began at."""

    span: Span
    walk: Walk
    entities: Entities


@dataclass(frozen=True, slots=True)
class NodePosition:
    """A node's position in the drawing of a walk: `column` 0 (start), 1 (phrases reached) or 2 (passages),
    and its height in that column, from 0 at the top to 1.
    """

    column: int
    height: float


def walks(result: RouteResult) -> list[Walked]:
    """Return the walks of a route in the order of its steps."""
    spans = {span.id: span for span in result.spans}
    found = []
    for span in result.spans:
        if isinstance(span.output, Search) and span.output.walk is not None:
            begun = (spans[link.span].output for link in span.links if link.span in spans)
            entities = next((one for one in begun if isinstance(one, Entities)), Entities(()))
            found.append(Walked(span, span.output.walk, entities))
    return found


def looked(result: RouteResult) -> Entities | None:
    """Return the question's entities that a route found, if they were too few to walk."""
    found = (span.output for span in result.spans if isinstance(span.output, Entities))
    return next((one for one in found if not one.seeds), None)


def placed(walk: Walk) -> list[NodePosition]:
    """Return a place for each node: passages by rank, starting points by weight, other phrases at the mean
    height of their neighbours, so that few lines cross.
    """
    columns: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for at, node in enumerate(walk.nodes):
        columns[2 if node.kind == "passage" else 0 if node.seed else 1].append(at)
    columns[0].sort(key=lambda at: -walk.nodes[at].seed)
    heights = _spread(columns[2]) | _spread(columns[0])
    near: dict[int, list[float]] = {at: [] for at in columns[1]}
    for edge in walk.edges:
        for a, b in ((edge.a, edge.b), (edge.b, edge.a)):
            if a in near and b in heights:
                near[a].append(heights[b])
    mean = {at: sum(some) / len(some) if some else 1.0 for at, some in near.items()}
    heights |= _spread(sorted(columns[1], key=lambda at: mean[at]))
    column = {at: number for number, some in columns.items() for at in some}
    return [NodePosition(column[at], heights[at]) for at in range(len(walk.nodes))]


def _spread(nodes: Sequence[int]) -> dict[int, float]:
    return {node: (at + 0.5) / len(nodes) for at, node in enumerate(nodes)}
