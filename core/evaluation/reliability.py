"""The calibration of grades: of the cases graded 0.7, seven in ten should be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from core.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class Bin:
    """The cases whose grade lies in [low, high) (the last bin has 1 too): their mean grade, and the share of
    them that is positive.
    """

    low: float
    high: float
    n: int
    mean: float
    share: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins that hold cases, in order.

    `ece` is the expected calibration error: the mean distance of grade and share over the bins, weighted by
    their cases (Guo et al. 2017, "On Calibration of Modern Neural Networks", arXiv:1706.04599, section 2).
    `brier` is the mean squared distance of grade and label (Brier 1950). Both are 0 at best.
    """

    bins: tuple[Bin, ...]
    ece: float
    brier: float
    n: int


def read(stored: Any) -> Reliability | None:
    """Return a reliability that was stored as a mapping of its fields, or None for anything else."""
    try:
        return TypeAdapter(Reliability).validate_python(stored)
    except ValueError:
        return None


def reliability(grades: Sequence[float], positive: Sequence[bool], bins: int = 10) -> Reliability:
    """Return the calibration of grades from 0 to 1 against labels, in `bins` bins of equal width."""
    import numpy as np
    from sklearn.calibration import calibration_curve

    if len(grades) != len(positive) or not grades:
        raise BadInput(
            f"{len(grades)} grades and {len(positive)} labels; give the same number of both, at least one"
        )
    if not all(0 <= grade <= 1 for grade in grades):
        wrong = next(grade for grade in grades if not 0 <= grade <= 1)
        raise BadInput(f"a grade of {wrong!r}; grades are from 0 to 1")
    values, labels = np.array(grades, np.float64), np.array(positive, np.float64)
    share, mean = calibration_curve(labels, values, n_bins=bins, pos_label=1.0)
    edges = np.linspace(0, 1, bins + 1)
    counts = np.bincount(np.searchsorted(edges[1:-1], values), minlength=bins)  # as scikit-learn sorts them
    kept = np.flatnonzero(counts)
    found = tuple(
        Bin(float(edges[at]), float(edges[at + 1]), int(counts[at]), float(m), float(s))
        for at, m, s in zip(kept, mean, share, strict=True)
    )
    ece = sum(one.n * abs(one.mean - one.share) for one in found) / len(values)
    return Reliability(found, ece, float(((values - labels) ** 2).mean()), len(values))
