"""Choosing thresholds on labelled questions: a small model's never come from a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class Thresholds:
    """An upper and a lower threshold with what they do on the data they were fitted on.

    `precision` is the share of cases at or above `high` that are positive; `miss_precision` the share of
    cases below `low` that are negative. Either is None where no case falls there.
    """

    high: float
    low: float
    precision: float | None
    miss_precision: float | None
    n: int


def fit(
    scores: Sequence[float], positive: Sequence[bool], *, precision: float = 0.9, miss_precision: float = 0.8
) -> Thresholds:
    """The widest "sure" regions on both sides that keep the wanted precision.

    `high` is the lowest threshold at or above which at least `precision` of the cases are positive, `low`
    the highest below which at least `miss_precision` are negative and which does not pass `high`. Where the
    wanted precision cannot be had, `high` is above every score and `low` at 0: the region is
    empty. Both lie midway between neighbouring scores, so that a small change flips no decision.
    """
    if len(scores) != len(positive) or not scores:
        raise BadInput(
            f"{len(scores)} scores and {len(positive)} labels; give the same number of both, at least one"
        )
    cases = sorted(zip(scores, positive, strict=True))
    edges = sorted({0.0, 1.0, *((a[0] + b[0]) / 2 for a, b in pairwise(cases))})

    def share_positive(threshold: float) -> float | None:
        above = [label for score, label in cases if score >= threshold]
        return sum(above) / len(above) if above else None

    def share_negative(threshold: float) -> float | None:
        below = [not label for score, label in cases if score < threshold]
        return sum(below) / len(below) if below else None

    high = next((e for e in edges if (share_positive(e) or 0.0) >= precision), 1.0)
    low = next(
        (e for e in reversed(edges) if e <= high and (share_negative(e) or 0.0) >= miss_precision), 0.0
    )
    return Thresholds(high, low, share_positive(high), share_negative(low), len(cases))


@dataclass(frozen=True, slots=True)
class Cut:
    """One threshold and its balanced accuracy, the mean of the shares of positive cases at or above it and of
    negative cases below it; None where one kind is missing.
    """

    threshold: float
    balanced: float | None
    n: int


def cut(scores: Sequence[float], positive: Sequence[bool]) -> Cut:
    """The threshold of the highest balanced accuracy, midway between neighbouring scores; of equal ones the
    lowest. BadInput unless there are cases of both kinds.
    """
    if len(scores) != len(positive) or not any(positive) or all(positive):
        raise BadInput(f"{sum(positive)} of {len(positive)} cases are positive; a threshold needs both kinds")
    between = ((a, b, (a + b) / 2) for a, b in pairwise(sorted(scores)))
    edges = sorted({min(scores), *(middle if middle > a else b for a, b, middle in between)})
    return max((worth(edge, scores, positive) for edge in edges), key=lambda one: one.balanced or 0.0)


def worth(threshold: float, scores: Sequence[float], positive: Sequence[bool]) -> Cut:
    """What `threshold` is worth on these cases."""
    above = [score >= threshold for score, label in zip(scores, positive, strict=True) if label]
    below = [score < threshold for score, label in zip(scores, positive, strict=True) if not label]
    both = (sum(above) / len(above) + sum(below) / len(below)) / 2 if above and below else None
    return Cut(threshold, both, len(scores))
