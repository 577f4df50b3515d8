"""Two routes over the questions both were scored on, all or those of a kind: the difference, its interval,
and what so few questions cannot exclude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from core.evaluation.statistics import ALPHA, LEVEL, Interval, excluded

EVERY = "all questions"  # the one kind of a set whose questions have none
Column = Mapping[str, float]  # question -> value
Kinds = Mapping[str, Sequence[str]]  # kind -> its questions


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference `route` minus `other`, paired by question, with its "t+1" interval."""

    route: str
    other: str
    # questions on which both were scored
    n: int
    delta: float
    low: float
    high: float
    # standard deviation of the differences; None below two questions
    sd: float | None = None
    # of the interval: .95 unless several comparisons are one family
    level: float = LEVEL
    # the kind of question that it is over
    mode: str = EVERY
    # so few questions that not even a loss on all of them could be shown
    blind: bool = False

    @property
    def verdict(self) -> str:
        """Return the conclusion from the interval."""
        return excluded((self.low, self.high))


def pair(
    route: str, other: str, differences: Sequence[float], level: float = LEVEL, mode: str = EVERY
) -> Difference | None:
    """Compare two routes by their differences on each question; None without any."""
    if not differences:
        return None
    n = len(differences)
    delta = sum(differences) / n
    squares = sum((value - delta) ** 2 for value in differences)
    return from_summary(route, other, n, delta, sqrt(squares / (n - 1)) if n > 1 else None, level, mode)


def from_summary(
    route: str,
    other: str,
    n: int,
    delta: float,
    sd: float | None,
    level: float = LEVEL,
    mode: str = EVERY,
) -> Difference | None:
    """Compare two routes by n, mean and standard deviation of their differences, each between -1 and 1.

    The interval is `core.evaluation.statistics.difference_interval`, of which these three are all it needs.
    """
    if n < 1 or (n > 1 and sd is None):
        return None
    low, high = _ends(n, delta, sd or 0.0, level)
    return Difference(route, other, n, delta, low, high, sd, level, mode, blind(n, level))


def _ends(n: int, delta: float, sd: float, level: float) -> Interval:
    from scipy.special import stdtrit

    centre = n * delta / (n + 2)
    squares = (n - 1) * sd**2 + n * (delta - centre) ** 2 + (1 + centre) ** 2 + (1 - centre) ** 2
    half = float(stdtrit(n + 1, (1 + level) / 2)) * sqrt(squares / (n + 1) / (n + 2))
    return max(-1.0, centre - half), min(1.0, centre + half)


def losses(values: Mapping[str, Column], kinds: Kinds, baseline: str) -> tuple[Difference, ...]:
    """Compare every route with the baseline in every kind of question; kinds without a common score are left
    out.

    The kinds of one route are one family (Bonferroni), so other routes cannot hide a loss.
    """
    found: list[Difference | None] = []
    for route in (route for route in values if route != baseline):
        columns = {mode: paired(values[route], values[baseline], asked) for mode, asked in kinds.items()}
        level = family_level([len(column) for column in columns.values() if column])
        found += [pair(route, baseline, list(one.values()), level, mode) for mode, one in columns.items()]
    return tuple(one for one in found if one is not None)


def from_figures(
    rows: Mapping[str, tuple[int, float, float | None]], route: str, baseline: str
) -> tuple[Difference, ...]:
    """Compare one route by n, mean and standard deviation of the differences in each kind."""
    level = family_level([n for n, _, _ in rows.values()])
    found = (from_summary(route, baseline, *row, level, mode) for mode, row in rows.items())
    return tuple(one for one in found if one is not None)


def family_level(sizes: Sequence[int]) -> float:
    """Return the level of each interval so that all kinds together keep .95; kinds too small to show a loss
    at all are not counted.
    """
    able = sum(not blind(n, 1 - ALPHA) for n in sizes)
    return 1 - ALPHA / max(1, able)


@lru_cache(maxsize=1024)
def blind(n: int, level: float) -> bool:
    """Return whether `n` questions cannot show even a loss of 1 on each of them."""
    return n < 1 or _ends(n, -1.0, 0.0, level)[1] >= 0


def paired(mine: Column, theirs: Column, within: Sequence[str] | None = None) -> dict[str, float]:
    """Return one route minus the other by question, for the questions both have a value for."""
    asked = theirs if within is None else within
    return {q: mine[q] - theirs[q] for q in asked if q in mine and q in theirs}
