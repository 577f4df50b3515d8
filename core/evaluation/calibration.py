"""Choosing thresholds on labelled cases, and whether grades are calibrated: of the cases graded 0.7, seven in
ten should be right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from core.domain.errors import BadInput

Acts = Literal["from", "below"]  # whether a step acts from its threshold on, or below it
Objective = Literal["f1", "balanced accuracy", "precision", "recall"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
WANTED: tuple[Objective, ...] = ("precision", "recall")  # those that need a wanted value
DIGITS = 12
Counts = NDArray[np.float64]  # last axis: true positives, false positives, false negatives, true negatives


def choose(
    scores: Sequence[float],
    positive: Sequence[bool],
    acts: Acts = "from",
    objective: Objective = "f1",
    wanted: float | None = None,
) -> float:
    """Return the threshold of the highest value of `objective` on these cases; of equal ones the lowest.

    For "precision" (or "recall") the one of the highest recall (precision) of those with at least `wanted`.
    It lies midway between neighbouring scores, rounded as far as no decision changes. BadInput where a kind
    of case is missing, or no threshold reaches what is wanted.
    """
    if not any(positive) or all(positive):
        raise BadInput(f"{sum(positive)} of {len(positive)} cases are positive; a threshold needs both kinds")
    if (objective in WANTED) != (wanted is not None) or not 0 < (wanted or 1) <= 1:
        raise BadInput(f"wanted={wanted!r} for {objective}; give above 0 to 1 for precision and recall alone")
    edges, counts = tables(scores, positive, acts)
    values = {name: rate(counts, name) for name in OBJECTIVES}
    if objective in WANTED:
        other: Objective = "recall" if objective == "precision" else "precision"
        reached = values[objective] >= (wanted or 0) - 1e-12
        if not reached.any():
            at = int(np.nanargmax(values[objective]))
            raise BadInput(
                f"no threshold reaches {objective} {wanted:g} on the questions it is chosen on; the best is"
                f" {values[objective][at]:.2f}, at {edges[at]:.3g}"
            )
        rank = np.where(reached, np.nan_to_num(values[other]), -1.0)
    else:
        rank = np.nan_to_num(values[objective])
    return float(edges[int(np.flatnonzero(rank >= rank.max() - 1e-12)[0])])


def tables(
    scores: Sequence[float], positive: Sequence[bool], acts: Acts
) -> tuple[NDArray[np.float64], Counts]:
    """All thresholds that decide differently, ascending, shape (t,), and their counts, shape (t, 4)."""
    from sklearn.metrics import confusion_matrix_at_thresholds

    tn, fp, fn, tp, known = confusion_matrix_at_thresholds(list(positive), list(scores))
    from_here = np.column_stack([tp, fp, fn, tn])[::-1].astype(np.float64)
    values = known[::-1]
    edges = [tidy(None, float(values[0])), *(tidy(float(a), float(b)) for a, b in pairwise(values))]
    edges.append(tidy(float(values[-1]), float(values[-1]) + 0.01))  # above every score
    kinds = from_here[0, :2]
    from_here = np.vstack([from_here, [0.0, 0.0, *kinds]])
    return np.array(edges), turned(from_here) if acts == "below" else from_here


def turned(counts: Counts) -> Counts:
    """Turn the counts for a step that acts below its threshold, where acting is right on what is not
    positive.
    """
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)
    return np.stack([tn, fn, fp, tp], axis=-1)


def tidy(below: float | None, score: float) -> float:
    """Return the shortest decimal near the middle of (below, score]; without `below` one at or under
    `score`.
    """
    middle = score if below is None else (below + score) / 2
    for digits in range(2, DIGITS):
        short = math.floor(score * 10**digits) / 10**digits if below is None else round(middle, digits)
        if short <= score and (below is None or short > below):
            return short
    return middle if below is None or below < middle else score


def rate(counts: Counts, objective: Objective) -> NDArray[np.float64]:
    """Return an objective from counts, shape (..., 4) to (...); NaN if it is not defined."""
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if objective == "precision":
            return np.asarray(tp / (tp + fp))
        if objective == "recall":
            return np.asarray(tp / (tp + fn))
        if objective == "f1":
            return np.asarray(2 * tp / (2 * tp + fp + fn))
        return np.asarray((tp / (tp + fn) + tn / (tn + fp)) / 2)


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


def read_reliability(stored: Any) -> Reliability | None:
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
        raise BadInput(f"{len(grades)} grades and {len(positive)} labels; give as many of both, at least one")
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
