"""Cohen's kappa of two graders with an interval over questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import RESAMPLES, SEED

Weights = Literal["quadratic"] | None
Graded = tuple[
    str, int, int
]  # id of a question; the first grader's grade of one of its passages; the second's
Table = NDArray[np.float64]  # (levels, levels, ...): passages that the first graded i and the second j


@dataclass(frozen=True, slots=True)
class Kappa:
    """A kappa with its interval. `value` is None if it is undefined: both graders gave one and the same grade
    throughout. `ci95`: the 95% percentile bootstrap interval; None with fewer than two questions, or if kappa
    is undefined in a resample.
    """

    value: float | None
    ci95: tuple[float, float] | None


def kappa(graded: Sequence[Graded], levels: Sequence[int], weights: Weights = None) -> Kappa:
    """Cohen's kappa. For its interval questions are resampled, each with all its passages: what is judged for
    one question is not independent.

    Cohen 1960, "A coefficient of agreement for nominal scales"; quadratic weights: Cohen 1968, "Weighted
    kappa". ValueError for a grade that is not among `levels`.
    """
    at = {question: n for n, question in enumerate(dict.fromkeys(one[0] for one in graded))}
    size = len(levels)
    cells = np.zeros((size, size, len(at)))
    for question, first, second in graded:
        cells[levels.index(first), levels.index(second), at[question]] += 1
    # How much each pair of grades disagrees: 1 if they differ, or the square of their distance.
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weight = np.asarray(apart**2 if weights == "quadratic" else apart > 0, np.float64)
    whole = float(_of(cells.sum(axis=2)[..., None], weight)[0]) if at else np.nan
    if len(at) < 2:
        return Kappa(whole if np.isfinite(whole) else None, None)
    ends = _interval(cells, weight)
    return Kappa(whole if np.isfinite(whole) else None, ends if np.isfinite(ends).all() else None)


def _interval(cells: Table, weight: Table) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval (Efron 1979) over the questions, the last axis."""
    from scipy.stats import bootstrap

    count = cells.shape[2]

    def statistic(drawn: NDArray[np.float64], axis: int) -> NDArray[np.float64]:  # noqa: ARG001
        times = np.stack([np.bincount(row, minlength=count) for row in drawn.astype(np.int64)], axis=1)
        return _of(cells @ times, weight)

    found = bootstrap(
        (np.arange(count),),
        statistic,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=SEED,
    ).confidence_interval
    return float(found.low), float(found.high)


def _of(tables: Table, weight: Table) -> NDArray[np.float64]:
    """Kappa of each table of the last axis: 1 - observed disagreement / that of chance, both weighted."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = tables / tables.sum(axis=(0, 1))
        chance = share.sum(axis=1)[:, None] * share.sum(axis=0)[None]
        found: NDArray[np.float64] = 1 - np.tensordot(weight, share) / np.tensordot(weight, chance)
    return found
