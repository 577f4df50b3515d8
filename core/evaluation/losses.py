"""Kinds of question at which a route is worse than the baseline, and what so few questions cannot exclude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.evaluation.pairs import Pair, from_summary, pair
from core.evaluation.statistics import ALPHA

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
