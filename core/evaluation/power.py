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


def more(n: int, delta: float, sd: float) -> float:
    """The questions to label beyond the `n` at hand, rounded up; 0 where there are enough, and infinite from
    FEASIBLE on.
    """
    lacking = needed(delta, sd) - n
    return inf if lacking > FEASIBLE else max(0, ceil(lacking))


def more_in_words(n: int, delta: float, sd: float, between: str) -> str:
    """One sentence on `more`; "" where the questions at hand are enough."""
    lacking = more(n, delta, sd)
    if lacking == inf:
        return (
            f"No feasible number of labels (up to {FEASIBLE:,} more questions) can decide between {between}."
        )
    if not lacking:
        return ""
    count = _rounded(int(lacking))
    return f"Label about {count:,} more question{'s' * (count != 1)} to decide between {between}."


def _rounded(count: int) -> int:
    """Two digits, upwards: more would claim what a rough figure does not know."""
    step: int = 10 ** max(0, floor(log10(count)) - 1)
    return ceil(count / step) * step
