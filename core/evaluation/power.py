"""How many more questions it would take to distinguish two routes."""

from __future__ import annotations

from math import ceil, floor, inf, log10

from core.evaluation.effects import POWER, SAME
from core.evaluation.statistics import ALPHA

FEASIBLE = 10_000  # questions that somebody may still label: at two minutes each two months of full work


def needed(delta: float, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The questions at which a two-sided paired test would show a mean difference of `delta` with
    probability `power`, where the differences of single questions vary by `sd`; infinite where `delta` is 0.

    n = ((z_(1-alpha/2) + z_power) sd / delta)^2, by the normal approximation (Chow, Shao & Wang 2008, 3.1.1).
    The t-test asks for about two more (Cohen 1988, table 2.4.1 for d_z). It takes the measured difference for
    the true one, so it is a rough figure, and one comparison for the only one.
    """
    from scipy.special import ndtri

    if abs(delta) <= SAME:
        return inf
    return float(((ndtri(1 - alpha / 2) + ndtri(power)) * sd / delta) ** 2)


def rounded(count: int) -> int:
    """Two digits, upwards: more would claim what a rough figure does not know. `count` is 1 or more."""
    step: int = 10 ** max(0, floor(log10(count)) - 1)
    return ceil(count / step) * step
