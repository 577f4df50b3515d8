"""Whether a difference between two routes is more than chance: intervals, paired tests, many comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

SEED = 20260101
RESAMPLES = 9_999
ALPHA = 0.05
Key = TypeVar("Key")
Interval = tuple[float, float]
Means = NDArray[np.float64]
_SAME = 100 * np.finfo(np.float64).eps
_DIGITS = 12  # of a mean: more are rounding, which would part equal means and depend on what else is compared
_CHUNK = 500  # resamples held in memory at once
_KEPT = 1_000  # questions up to which what was drawn is kept: 20 MB at most for a number of questions


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
    count = columns.shape[1]
    # Means by how often each question was drawn: a matrix product in place of a copy for each column.
    drawn = [
        of(np.round(columns @ times.T.astype(np.float64) / count, _DIGITS)) for times in resamples(count)
    ]
    ends = np.percentile(np.concatenate(drawn, axis=-1), [2.5, 97.5], axis=-1)
    return [(float(low), float(high)) for low, high in ends.T]


def paired_p(route: Sequence[float], baseline: Sequence[float]) -> float:
    """Two-sided p of the mean difference under exchange within each question (Fisher's randomisation test).

    Exact while 2^n is at most the number of resamples, else sampled with a fixed seed.
    """
    return paired_ps([list(np.asarray(route) - np.asarray(baseline))])[0]


def paired_ps(differences: Sequence[Sequence[float]]) -> list[float]:
    """`paired_p` of each list of differences; lists of one length share their exchanges."""
    found = [1.0] * len(differences)  # one pair exchanged is as large the other way round
    for places, matrix in _by_length(differences):
        count = matrix.shape[1]

        def mean(signs: Means, matrix: Means = matrix, count: int = count) -> Means:
            return np.asarray(np.round(signs @ matrix.T / count, _DIGITS))

        # Exchanging a pair is changing the sign of its difference: what is exchanged are the signs.
        drawn = np.concatenate([mean(1 - 2 * some.astype(np.float64)) for some in exchanges(count)])
        for place, p in zip(places, two_sided(mean(np.ones((1, count)))[0], drawn, count), strict=True):
            found[place] = float(p)
    return found


def two_sided(seen: Means, drawn: Means, count: int) -> Means:
    """Two-sided p of what was seen, shape (figures,), from `drawn` by all of `exchanges(count)`, shape
    (exchanges, figures). Sampled exchanges count what was seen as one more of them (Phipson & Smyth 2010).
    """
    more = 0 if _all_tried(count, RESAMPLES) else 1
    near = np.abs(seen) * _SAME  # sums in another order
    sides = [(drawn <= seen + near).sum(axis=0), (drawn >= seen - near).sum(axis=0)]
    return np.asarray(np.minimum(1.0, 2 * (np.minimum(*sides) + more) / (len(drawn) + more)))


def resamples(count: int) -> Iterable[NDArray[np.uint16]]:
    """How often each of `count` questions was drawn, with replacement, in each of 9,999 resamples: the same
    ones at every call, in chunks of shape (resamples, questions).
    """
    return _resamples_kept(count, RESAMPLES) if count <= _KEPT else _resamples_drawn(count, RESAMPLES)


def exchanges(count: int) -> Iterable[NDArray[np.int8]]:
    """Which of `count` pairs are exchanged, 1 or 0, in chunks of shape (exchanges, pairs): all ways there
    are, while they are no more than the resamples, else as many drawn ones, the same at every call.
    """
    return _exchanges_kept(count, RESAMPLES) if count <= _KEPT else _exchanges_drawn(count, RESAMPLES)


@lru_cache(maxsize=4)
def _resamples_kept(count: int, size: int) -> tuple[NDArray[np.uint16], ...]:
    return tuple(_resamples_drawn(count, size))


def _resamples_drawn(count: int, size: int) -> Iterator[NDArray[np.uint16]]:
    rng = np.random.default_rng(SEED)
    for start in range(0, size, _CHUNK):
        drawn = rng.integers(0, count, (min(_CHUNK, size - start), count))
        rows = np.arange(len(drawn))[:, None] * count
        yield np.bincount((drawn + rows).ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.uint16)


@lru_cache(maxsize=4)
def _exchanges_kept(count: int, size: int) -> tuple[NDArray[np.int8], ...]:
    return tuple(_exchanges_drawn(count, size))


def _exchanges_drawn(count: int, size: int) -> Iterator[NDArray[np.int8]]:
    if _all_tried(count, size):
        yield (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(np.int8)
        return
    rng = np.random.default_rng(SEED)
    pairs = np.tile(np.arange(2, dtype=np.int8), (_CHUNK, count, 1))
    for start in range(0, size, _CHUNK):
        yield rng.permuted(pairs, axis=-1)[: size - start, :, 0].copy()


def _all_tried(count: int, size: int) -> bool:
    return count < 64 and 2**count <= size


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
