"""Fusion of rankings: pure functions (reciprocal rank, normalised scores)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from core.domain.errors import BadInput
from core.domain.types import Hit, Passage, Ranking

Norm = Literal["z", "min_max", "dbsf", "none"]


def rrf(lists: Sequence[Ranking], *, k: float = 60, weights: Sequence[float] | None = None) -> Ranking:
    """Reciprocal rank fusion: sum over lists of weight / (k + rank), rank from 1; a list without it adds 0.

    A passage repeated inside one list counts once, at its best rank. Ties break by passage id.
    Source: Cormack, Clarke & Buettcher 2009, "Reciprocal Rank Fusion", SIGIR, section 2.
    """
    if k < 0:
        raise BadInput(f"RRF k is {k}; it must be 0 or more")
    scores = [{id: 1 / (k + rank) for rank, id in enumerate(_best(ranking), 1)} for ranking in lists]
    return _weighted(lists, scores, weights)


def linear(
    lists: Sequence[Ranking], *, weights: Sequence[float] | None = None, norm: Norm = "min_max"
) -> Ranking:
    """Weighted sum of each list's scores, normalised by `z`, `min_max` or `dbsf`, or as they are; a list
    without the passage adds 0.

    A passage repeated inside one list counts once, at its best rank. Ties break by id. BadInput for another
    `norm`.
    Source: Bruch, Gai & Ingber 2022, "An Analysis of Fusion Functions ...", arXiv:2210.11934.
    """
    norms: dict[str, Callable[[dict[str, float]], dict[str, float]]]
    norms = {"z": z, "min_max": min_max, "dbsf": dbsf, "none": dict}
    if norm not in norms:
        raise BadInput(f"unknown normalisation {norm!r}; known: {', '.join(norms)}")
    return _weighted(lists, [norms[norm](_best(ranking)) for ranking in lists], weights)


def z(scores: dict[str, float]) -> dict[str, float]:
    """Scores in population standard deviations from their mean; all equal: 0.0 each."""
    if len({*scores.values()}) < 2:
        return dict.fromkeys(scores, 0.0)
    mean, deviation = statistics.fmean(scores.values()), statistics.pstdev(scores.values())
    return {id: (score - mean) / deviation for id, score in scores.items()}


def min_max(scores: dict[str, float]) -> dict[str, float]:
    """Scores mapped onto [0, 1]; all equal (one hit, or ties): 1.0 each, they are the list's best; none:
    none.
    """
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {id: (score - low) / (high - low) for id, score in scores.items()}


def dbsf(scores: dict[str, float]) -> dict[str, float]:
    """Scores by where they lie between 3 standard deviations below and above their mean, clipped to [0, 1].

    The deviation is the sample's (n - 1). All equal (one hit, or ties): 0.5 each, what any score at the mean
    gets; none: none. Unlike min-max, the list's worst hit keeps a share and one outlier does not press the
    rest together.
    Source: Mazzeschi 2023, "Distribution-Based Score Fusion (DBSF)", with deviation and middle as in Qdrant.
    """
    if not scores:
        return {}
    if max(scores.values()) == min(scores.values()):  # of equal numbers the computed deviation may not be 0
        return dict.fromkeys(scores, 0.5)
    mean, deviation = statistics.fmean(scores.values()), statistics.stdev(scores.values())
    return {id: min(1.0, max(0.0, 0.5 + (score - mean) / (6 * deviation))) for id, score in scores.items()}


def _best(ranking: Ranking) -> dict[str, float]:
    """Score by passage id in rank order; of repeats the first, which is the best, stands."""
    best: dict[str, float] = {}
    for hit in ranking:
        best.setdefault(hit.passage.id, hit.score)
    return best


def _weighted(
    lists: Sequence[Ranking], scores: Sequence[dict[str, float]], weights: Sequence[float] | None
) -> Ranking:
    shares = [1.0] * len(lists) if weights is None else list(weights)
    if len(shares) != len(lists):
        raise BadInput(f"{len(shares)} weights for {len(lists)} lists; give one weight per list")
    passages: dict[str, Passage] = {}
    total: dict[str, float] = {}
    for ranking, score, share in zip(lists, scores, shares, strict=True):
        passages.update({hit.passage.id: hit.passage for hit in ranking})
        for id, value in score.items():
            total[id] = total.get(id, 0.0) + share * value
    ranked = sorted(sorted(total), key=total.__getitem__, reverse=True)
    return tuple([Hit(passages[id], total[id]) for id in ranked])
