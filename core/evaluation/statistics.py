"""Whether a difference between two routes is more than chance: intervals, paired tests, many comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

SEED = 20260101
RESAMPLES = 9_999
ALPHA = 0.05
Key = TypeVar("Key")
Interval = tuple[float, float]
Means = NDArray[np.float64]
_DIGITS = 12  # of a mean: more are rounding, which would part equal means and depend on what else is compared
_CHUNK = 500  # resamples held in memory at once


def interval(values: Sequence[float]) -> Interval | None:
    """95 % percentile bootstrap interval of the mean (Efron 1979); None below two questions.

    The percentile method, because it stays defined where all questions score the same.
    """
    return intervals([values])[0]


def intervals(columns: Sequence[Sequence[float]]) -> list[Interval | None]:
    """`interval` of each column. Columns of one length share their resamples, which is what makes this fast;
    each gets what it would get alone.
    """
    found: list[Interval | None] = [None] * len(columns)
    for places, matrix in _by_length(columns):
        for place, pair in zip(places, intervals_of(matrix), strict=True):
            found[place] = pair
    return found


def intervals_of(columns: NDArray[np.float64], of: Callable[[Means], Means] = lambda m: m) -> list[Interval]:
    """95 % percentile bootstrap intervals of what `of` makes of means over the same questions.

    `columns`: shape (columns, questions), two questions or more; questions are resampled, so that columns
    stay paired. `of` is given means of shape (columns, resamples) and gives (figures, resamples).
    """
    from scipy.stats import bootstrap

    count = columns.shape[1]

    def statistic(drawn: NDArray[np.float64], axis: int) -> Means:  # noqa: ARG001
        # Means by how often each question was drawn: a matrix product in place of a copy for each column.
        rows = np.arange(len(drawn))[:, None] * count
        times = np.bincount((drawn.astype(np.int64) + rows).ravel(), minlength=drawn.size)
        return of(np.round(columns @ times.reshape(drawn.shape).T.astype(np.float64) / count, _DIGITS))

    found = bootstrap(
        (np.arange(count),), statistic, vectorized=True, n_resamples=RESAMPLES, batch=_CHUNK,
        method="percentile", rng=SEED,
    ).confidence_interval  # fmt: skip
    return [(float(low), float(high)) for low, high in zip(found.low, found.high, strict=True)]


def paired_p(route: Sequence[float], baseline: Sequence[float]) -> float:
    """Two-sided p of the mean difference under exchange within each question (Fisher's randomisation test).

    Exact while 2^n is at most the number of resamples, else sampled with a fixed seed.
    """
    return paired_ps([list(np.asarray(route) - np.asarray(baseline))])[0]


def paired_ps(differences: Sequence[Sequence[float]]) -> list[float]:
    """`paired_p` of each list of differences; lists of one length share their exchanges."""
    from scipy.stats import permutation_test

    found = [1.0] * len(differences)  # one pair exchanged is as large the other way round
    for places, matrix in _by_length(differences):

        def mean(signs: Means, axis: int, matrix: Means = matrix) -> Any:  # noqa: ARG001
            return np.round(signs @ matrix.T / matrix.shape[1], _DIGITS)

        # Exchanging a pair is changing the sign of its difference: what is exchanged are the signs.
        tested = permutation_test(
            (np.ones(matrix.shape[1]),), mean, permutation_type="samples", vectorized=True,
            n_resamples=RESAMPLES, batch=_CHUNK, rng=SEED,
        )  # fmt: skip
        for place, p in zip(places, tested.pvalue, strict=True):
            found[place] = float(p)
    return found


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values adjusted for their number (Holm 1979): smallest first, times those left, never falling."""
    adjusted: dict[Key, float] = {}
    floor = 0.0
    for place, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        floor = max(floor, min(1.0, (len(p_values) - place) * p))
        adjusted[key] = floor
    return adjusted


def verdict(delta: float, p_holm: float) -> str:
    """What may be said about a difference."""
    if p_holm >= ALPHA or delta == 0:
        return "no difference shown"
    return "better" if delta > 0 else "worse"


def _by_length(columns: Sequence[Sequence[float]]) -> list[tuple[list[int], NDArray[np.float64]]]:
    """Columns of two values or more, those of one length as a matrix, with their places."""
    places: dict[int, list[int]] = {}
    for place, column in enumerate(columns):
        if len(column) > 1:
            places.setdefault(len(column), []).append(place)
    return [(some, np.asarray([columns[place] for place in some], dtype=float)) for some in places.values()]
