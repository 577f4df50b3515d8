"""Whether a difference between two routes is more than chance: intervals, paired tests, many comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

SEED = 20260101
RESAMPLES = 9_999
ALPHA = 0.05
Key = TypeVar("Key")
_CHUNK = 500  # resamples held in memory at once


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % percentile bootstrap interval of the mean (Efron 1979); None below two questions.

    The percentile method, because it stays defined where all questions score the same.
    """
    from scipy.stats import bootstrap

    if len(values) < 2:
        return None
    found = bootstrap(
        (np.asarray(values),), np.mean, n_resamples=RESAMPLES, batch=_CHUNK, method="percentile", rng=SEED
    ).confidence_interval
    return float(found.low), float(found.high)


def paired_p(route: Sequence[float], baseline: Sequence[float]) -> float:
    """Two-sided p of the mean difference under exchange within each question (Fisher's randomisation test).

    Exact while 2^n is at most the number of resamples, else sampled with a fixed seed.
    """
    from scipy.stats import permutation_test

    differences = np.asarray(route) - np.asarray(baseline)
    if not differences.any() or len(differences) < 2:  # one pair exchanged is as large the other way round
        return 1.0
    # Exchanging a pair is changing the sign of its difference.
    return float(
        permutation_test(
            (differences,), _mean, permutation_type="samples", vectorized=True,
            n_resamples=RESAMPLES, batch=_CHUNK, rng=SEED,
        ).pvalue
    )  # fmt: skip


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


def _mean(sample: NDArray[np.float64], axis: int) -> Any:
    return np.mean(sample, axis=axis)
