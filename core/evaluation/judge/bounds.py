"""From a judge's score to a grade: bounds that agree best with people's grades on the cases given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.domain.errors import BadInput
from core.evaluation.calibration import Counts, tables

Bounds = tuple[float | None, ...]  # from which score the grade is 1, 2, ...; None: the judge never gives it


def choose(scores: Sequence[float], grades: Sequence[int], relevant_from: int, top: int) -> Bounds:
    """Never falling bounds for the grades 1 to `top`, scores from 0 to 1.

    That of `relevant_from` has the highest Cohen's kappa of relevant against not; the others have it for
    their own grade as far as that one leaves them room. BadInput where a kind of passage is missing.
    """
    if len({grade >= relevant_from for grade in grades}) < 2:
        kind = "relevant" if grades and grades[0] >= relevant_from else "not relevant"
        raise BadInput(f"all {len(grades)} passages are {kind}; a bound needs both kinds")
    alone = {grade: _alone(scores, [one >= grade for one in grades]) for grade in range(1, top + 1)}
    at = alone[relevant_from]
    below = [at]
    for grade in range(relevant_from - 1, 0, -1):
        below.append(min(below[-1], alone[grade]))
    above = [at]
    for grade in range(relevant_from + 1, top + 1):
        above.append(max(above[-1], alone[grade]))
    found = (*reversed(below[1:]), *above)
    return tuple(float(one) if np.isfinite(one) else None for one in found)


def graded(score: float, bounds: Bounds) -> int:
    """Return the grade for a score from 0 to 1."""
    return sum(bound is not None and score >= bound for bound in bounds)


def _alone(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the threshold of the highest kappa, the lowest of equal ones; out of reach if nothing is
    positive, and 0 if everything is.
    """
    if all(positive) or not any(positive):
        return 0.0 if any(positive) else np.inf
    edges, counts = tables(scores, positive, "from")
    kappas = np.nan_to_num(_kappa(counts))
    return max(0.0, float(edges[int(np.flatnonzero(kappas >= kappas.max() - 1e-12)[0])]))


def _kappa(counts: Counts) -> Counts:
    """Cohen's kappa of the (..., 4) true positives, false positives, false negatives, true negatives."""
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(2 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)))
