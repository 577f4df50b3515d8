"""The rank of each passage in each route, in a form that stays readable with twenty routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.analysis.run_view import title_of, worked
from core.domain.rank_changes import ranks
from core.domain.types import Run


@dataclass(frozen=True, slots=True)
class Row:
    """A passage: its id, its name, its gold grade (0 without a label), and its rank in each route with a
    result, in the routes' order; None if a route does not have it.
    """

    id: str
    name: str
    grade: int
    ranks: tuple[int | None, ...]


def contenders(run: Run, *, depth: int, limit: int) -> list[str]:
    """Return the passages in any route's top `depth`, best first by the sum of reciprocal ranks, at most
    `limit`.
    """
    worth: dict[str, float] = {}
    for result in worked(run):
        for id, rank in ranks(result.hits).items():
            if rank <= depth:
                worth[id] = worth.get(id, 0.0) + 1 / rank
    return sorted(worth, key=lambda id: (-worth[id], id))[:limit]


def rank_rows(
    run: Run, *, depth: int, limit: int = 40, gold: Mapping[str, int] | None = None, lit: str | None = None
) -> list[Row]:
    """Return the `contenders` with their ranks; a passage `lit` that is not among them gets the last row."""
    ids = contenders(run, depth=depth, limit=limit)
    if lit is not None and lit not in ids:
        ids = [*ids[: limit - 1], lit]
    tables = [ranks(result.hits) for result in worked(run)]
    grades = gold or {}
    return [
        Row(id, title_of(run, id), grades.get(id, 0), tuple(table.get(id) for table in tables)) for id in ids
    ]


def strength(rank: int, depth: int) -> float:
    """Return 1 for the first rank, 0.25 for the last of the top `depth`, 0 below it."""
    if rank > depth:
        return 0.0
    return 1.0 - 0.75 * (rank - 1) / max(1, depth - 1)
