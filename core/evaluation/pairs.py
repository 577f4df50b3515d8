"""Two routes over the questions both were scored on: the difference and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Pair:
    """The mean difference `route` minus `other` with its "t+1" interval, of level .95 unless stated."""

    route: str
    other: str
    # questions on which both were scored
    n: int
    delta: float
    low: float
    high: float
    # standard deviation of the differences; None below two questions
    sd: float | None


def pair(route: str, other: str, differences: Sequence[float], level: float = 0.95) -> Pair | None:
    """Compare two routes by their differences on each question; None without any."""
    if not differences:
        return None
    n = len(differences)
    delta = sum(differences) / n
    squares = sum((value - delta) ** 2 for value in differences)
    return from_summary(route, other, n, delta, sqrt(squares / (n - 1)) if n > 1 else None, level)


def from_summary(
    route: str, other: str, n: int, delta: float, sd: float | None, level: float = 0.95
) -> Pair | None:
    """Compare two routes by n, mean and standard deviation of their differences, each between -1 and 1.

    The interval is `core.evaluation.statistics.difference_interval`, of which these three are all it needs.
    """
    from scipy.special import stdtrit

    if n < 1 or (n > 1 and sd is None):
        return None
    centre = n * delta / (n + 2)
    squares = (n - 1) * (sd or 0.0) ** 2 + n * (delta - centre) ** 2 + (1 + centre) ** 2 + (1 - centre) ** 2
    half = float(stdtrit(n + 1, (1 + level) / 2)) * sqrt(squares / (n + 1) / (n + 2))
    return Pair(route, other, n, delta, max(-1.0, centre - half), min(1.0, centre + half), sd)
