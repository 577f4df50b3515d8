"""Means and differences of routes from people's labels and a judge's grades, corrected by those labels.

Prediction-powered inference: Angelopoulos et al. 2023, "Prediction-powered inference" (Science 382), with the
weight of PPI++ (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.evaluation.statistics import LEVEL, Interval, Table

Row = Table  # one dimension


@dataclass(frozen=True, slots=True)
class Corrected:
    """An estimate for all questions, of which people labelled some."""

    mean: float
    ci95: Interval
    # questions that people labelled
    labels: int
    # labelled questions that would give an interval this narrow without a judge; never less than `labels`
    equal_to: int
    # how far the judge's grades count, from 0 (not at all) to 1
    weight: float


def corrected(
    people: Sequence[float],
    judge: Sequence[float],
    unlabelled: Sequence[float],
    low: float = 0.0,
    high: float = 1.0,
) -> Corrected | None:
    """Estimate a mean over labelled and unlabelled questions; None without a labelled one.

    `people` and `judge` are a metric of the same labelled questions, by people's labels and by the judge's
    grades; `unlabelled` is the metric by the judge's grades where people gave none. All are between `low` and
    `high`. The interval holds however wrong the judge is, if the labelled questions are a random part of all.

    The labelled part has two pseudo-observations, one at each bound, as in `statistics.mean_interval`, which
    this equals at weight 0. The weight minimises the estimated variance; if the interval is still wider than
    that of the labels alone, which happens at a bound, the judge is left out.
    """
    n = len(people)
    if n == 0:
        return None
    alone = _estimate(people, np.zeros(n), np.zeros(0), low, high)
    if not len(unlabelled):
        return alone
    found = _estimate(people, np.asarray(judge) - np.mean(unlabelled), np.asarray(unlabelled), low, high)
    return found if _width(found) < _width(alone) else alone


def _estimate(people: Sequence[float], shift: Row, unlabelled: Row, low: float, high: float) -> Corrected:
    """Return the estimate; `shift` is the judge's value of each labelled question less its mean elsewhere."""
    from scipy.special import stdtrit

    n = len(people)
    values, shifts = np.array([*people, low, high]), np.array([*shift, 0.0, 0.0])
    within, between = np.cov(np.stack([values, shifts])) / (n + 2)
    weight, variance = 0.0, float(within[0])
    if len(unlabelled) > 1:
        spread = float(between[1] + np.var(unlabelled, ddof=1) / len(unlabelled))
        weight = float(np.clip(between[0] / spread, 0.0, 1.0)) if spread > 0 else 0.0
        variance += weight * (weight * spread - 2 * float(between[0]))
    half = float(stdtrit(n + 1, (1 + LEVEL) / 2) * np.sqrt(max(variance, 0.0)))
    middle = float(np.mean(values - weight * shifts))
    ends = (max(low, middle - half), min(high, middle + half))
    gain = float(within[0]) / variance if variance > 0 else 1.0
    return Corrected(
        float(np.clip(np.mean(people - weight * shift), low, high)), ends, n, max(n, int(n * gain)), weight
    )


def _width(one: Corrected) -> float:
    return one.ci95[1] - one.ci95[0]
