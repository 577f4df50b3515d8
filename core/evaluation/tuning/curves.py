"""Precision and recall over all thresholds, and whether scores are the probabilities they claim to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.evaluation.calibration import Acts
from core.evaluation.reliability import Reliability, reliability
from core.evaluation.tuning.targets import Judged, Target

MOST = 400  # points of a curve that are drawn


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall at each threshold, ascending; of the step that acts below its threshold, on the
    scores up to and with it.
    """

    thresholds: tuple[float, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]


def curve(cases: Sequence[Judged], acts: Acts) -> Curve | None:
    """Return the curve over `cases`, of at most 400 of its points, or None if no case is one to act on."""
    from sklearn.metrics import precision_recall_curve

    sign = 1 if acts == "from" else -1
    right = [case.positive == (acts == "from") for case in cases]
    if not any(right):
        return None
    precision, recall, thresholds = precision_recall_curve(right, [sign * case.score for case in cases])
    step = -(-len(thresholds) // MOST)
    kept = range(0, len(thresholds), step)[::sign]
    return Curve(
        tuple(sign * float(thresholds[at]) for at in kept),
        tuple(float(precision[at]) for at in kept),
        tuple(float(recall[at]) for at in kept),
    )


def reliable(target: Target, cases: Sequence[Judged]) -> Reliability | None:
    """Return the calibration of the scores as probabilities, or None if they are not meant as
    probabilities.
    """
    if not target.probability or not cases or not all(0 <= case.score <= 1 for case in cases):
        return None
    return reliability([case.score for case in cases], [case.positive for case in cases])
