"""The power of the comparison that verdicts rest on, and how many questions it takes."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import ALPHA

POWER = 0.8
FEASIBLE = 10_000  # questions that somebody may still label: at two minutes each two months of full work
_NODES = 64  # of the integration over the measured standard deviation
Numbers = NDArray[np.float64]


def power_of(
    n: int, delta: float, sd: float, *, alpha: float = ALPHA, above: float = 0.0, bounded: bool = True
) -> float:
    """Return the probability that the lower end of the interval of a mean difference is above `above`.

    The `n` differences are normal with mean `delta` and standard deviation `sd`. The interval has the level
    1 - `alpha`: t+1 (see core.evaluation.statistics.mean_interval) for a metric between 0 and 1, Student's t
    if not `bounded`. Integrates over the measured standard deviation, as the noncentral t distribution does
    (Cohen 1988, chapter 2).
    """
    ends, weights = _least_means(n, sd, alpha, above, bounded)
    return _chance(n, delta, sd, ends, weights)


def detectable(
    n: int, sd: float, *, alpha: float = ALPHA, power: float = POWER, bounded: bool = True
) -> float:
    """Return the smallest true mean difference that is shown with probability `power`; inf if none is.

    See `power_of`.
    """
    from scipy.optimize import brentq

    ends, weights = _least_means(n, sd, alpha, 0.0, bounded)
    if not np.isfinite(ends).all():
        return float("inf")
    high = float(ends.max()) + 10 * sd / sqrt(n)
    if sd == 0:
        return float(ends.max())
    return float(brentq(lambda delta: _chance(n, delta, sd, ends, weights) - power, 0.0, high, xtol=1e-6))


def needed(
    delta: float, sd: float, *, alpha: float = ALPHA, above: float = 0.0, power: float = POWER
) -> int | None:
    """Return how many questions it takes to show that a true difference of `delta` is above `above`, with
    probability `power` (see `power_of`); None if more than FEASIBLE.

    With `above` at minus a margin this is the number that shows a loss of the margin to be excluded.
    """
    if power_of(FEASIBLE, delta, sd, alpha=alpha, above=above) < power:
        return None
    low, high = 0, FEASIBLE
    while high - low > 1:
        middle = (low + high) // 2
        enough = power_of(middle, delta, sd, alpha=alpha, above=above) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def upper_sd(sd: float, n: int, confidence: float = 0.8) -> float:
    """Return the upper limit of the true standard deviation of normal values, of which `n`, two or more, have
    the standard deviation `sd`: a single pilot may well show too little of it (Browne 1995, "On the use of a
    pilot sample for sample size determination").
    """
    from scipy.special import chdtri

    return sd * sqrt((n - 1) / float(chdtri(n - 1, confidence)))


def rounded(count: int) -> int:
    """Round up to two digits: more would claim what a rough figure does not know. `count` is 1 or more."""
    step: int = 10 ** max(0, floor(log10(count)) - 1)
    return ceil(count / step) * step


def _least_means(n: int, sd: float, alpha: float, above: float, bounded: bool) -> tuple[Numbers, Numbers]:
    """Return the least measured mean whose interval ends above `above`, for each of _NODES measured standard
    deviations, and their weights; inf if none does.
    """
    chi, weights = _standard_deviations(n)
    squares = chi * sd**2  # the sum of squared deviations
    if not bounded:
        t = _quantile(n - 1, alpha)
        return above + t * np.sqrt(squares / (n - 1) / n), weights
    # The lower end A d - sqrt(k (Q + C d^2)) is to be `above`: a quadratic equation in the mean d.
    a, c, q = n / (n + 2), 2 * n / (n + 2), squares + 2
    k = _quantile(n + 1, alpha) ** 2 / ((n + 1) * (n + 2))
    lead = a**2 - k * c
    if lead <= 0:
        return np.full(len(chi), np.inf), weights
    return (a * above + np.sqrt(k * (q * lead + c * above**2))) / lead, weights


def _chance(n: int, delta: float, sd: float, ends: Numbers, weights: Numbers) -> float:
    from scipy.special import ndtr

    if sd == 0:
        return float(weights @ (ends < delta))
    return float(weights @ ndtr((delta - ends) * sqrt(n) / sd))


@lru_cache(maxsize=1024)
def _quantile(freedom: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha / 2))


@lru_cache(maxsize=1024)
def _standard_deviations(n: int) -> tuple[Numbers, Numbers]:
    """Return quantiles of chi squared with `n` - 1 degrees of freedom, and weights that sum to 1."""
    from scipy.special import chdtri

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return chdtri(max(1, n - 1), (1 - nodes) / 2), weights / 2
