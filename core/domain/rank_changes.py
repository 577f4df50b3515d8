"""The moves between two rankings, in the words of every comparison on screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.domain.types import Ranking

Kind = Literal["better", "worse", "same", "new"]


@dataclass(frozen=True, slots=True)
class Move:
    """A passage's move between two rankings."""

    kind: Kind
    by: int = 0  # number of ranks up (better) or down (worse)
    was: int | None = None  # earlier rank, if any


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of the passages in a top `depth`, and `lost`: those of the baseline's that fell out of it."""

    of: Mapping[str, Move]
    lost: tuple[str, ...]
    counts: Mapping[Kind, int]


def ranks(ranking: Ranking) -> dict[str, int]:
    """Rank from 1 by passage id; of a repeat the first counts."""
    found: dict[str, int] = {}
    for rank, hit in enumerate(ranking, 1):
        found.setdefault(hit.passage.id, rank)
    return found


def moves(baseline: Ranking, ranking: Ranking, depth: int) -> Moves:
    """Compare the top `depth` of two rankings. A passage from below the baseline's top is new; `was` tells
    its rank there.
    """
    before, after = ranks(baseline), ranks(ranking)
    of: dict[str, Move] = {}
    for id, rank in after.items():
        if rank > depth:
            continue
        was = before.get(id)
        if was is None or was > depth:
            of[id] = Move("new", 0, was)
        elif was == rank:
            of[id] = Move("same", 0, was)
        else:
            of[id] = Move("better" if was > rank else "worse", abs(was - rank), was)
    lost = tuple(id for id, rank in before.items() if rank <= depth and id not in of)
    counts = Counter(move.kind for move in of.values())
    return Moves(of, lost, {kind: counts[kind] for kind in ("better", "worse", "same", "new")})
