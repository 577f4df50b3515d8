"""Two routes over the questions both were scored on: the difference and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from core.evaluation.statistics import ALPHA


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


EVERY = "all questions"  # the one kind of a set whose questions have none
Column = Mapping[str, float]  # question -> value
Kinds = Mapping[str, Sequence[str]]  # kind -> its questions


@dataclass(frozen=True, slots=True)
class Loss:
    """The mean difference of a route from the baseline over the questions of one kind."""

    route: str
    mode: str
    # questions of the kind that both routes were scored on
    n: int
    delta: float
    # interval of the difference, at the level that the number of kinds asks for
    low: float
    high: float
    # that level: .95 for one kind
    level: float
    # so few questions that not even a loss on all of them could be shown
    blind: bool

    @property
    def shown(self) -> bool:
        """Return whether the route is shown to be worse."""
        return self.high < 0


def losses(values: Mapping[str, Column], kinds: Kinds, baseline: str) -> tuple[Loss, ...]:
    """Compare every route with the baseline in every kind of question; kinds without a common score are left
    out.

    The kinds of one route are one family (Bonferroni), so other routes cannot hide a loss.
    """
    base = values[baseline]
    found: list[Loss] = []
    for route, mine in values.items():
        if route == baseline:
            continue
        apart = {mode: list(paired(mine, base, questions).values()) for mode, questions in kinds.items()}
        apart = {mode: differences for mode, differences in apart.items() if differences}
        level = family_level([len(differences) for differences in apart.values()])
        for mode, differences in apart.items():
            one = pair(route, baseline, differences, level)
            if one is not None:
                found.append(_loss(mode, one, level))
    return tuple(found)


def from_figures(
    rows: Mapping[str, tuple[int, float, float | None]], route: str, baseline: str
) -> tuple[Loss, ...]:
    """Compare one route by n, mean and standard deviation of the differences in each kind."""
    level = family_level([n for n, _, _ in rows.values()])
    found = ((mode, from_summary(route, baseline, *row, level)) for mode, row in rows.items())
    return tuple(_loss(mode, one, level) for mode, one in found if one is not None)


def family_level(sizes: Sequence[int]) -> float:
    """Return the level of each interval so that all kinds together keep .95; kinds too small to show a loss
    at all are not counted.
    """
    able = sum(not blind(n, 1 - ALPHA) for n in sizes)
    return 1 - ALPHA / max(1, able)


@lru_cache(maxsize=1024)
def blind(n: int, level: float) -> bool:
    """Return whether `n` questions cannot show even a loss of 1 on each of them."""
    one = from_summary("", "", n, -1.0, 0.0, level)
    return one is None or one.high >= 0


def paired(mine: Column, theirs: Column, within: Sequence[str] | None = None) -> dict[str, float]:
    """Return one route minus the other by question, for the questions both have a value for."""
    asked = theirs if within is None else within
    return {q: mine[q] - theirs[q] for q in asked if q in mine and q in theirs}


def _loss(mode: str, one: Pair, level: float) -> Loss:
    return Loss(one.route, mode, one.n, one.delta, one.low, one.high, level, blind(one.n, level))
