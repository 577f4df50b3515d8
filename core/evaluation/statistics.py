"""Statistics of the difference between two routes: intervals, paired tests, many comparisons, power; and
Cohen's kappa of two graders.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log2, log10, sqrt
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

SEED = 20260101
RESAMPLES = 9_999
FLIPS = 9_999  # of signs in a test over many pairs
ALPHA = 0.05
LEVEL = 1 - ALPHA
ROUNDING = 1e-9  # scores that are nearer to one another are equal
Key = TypeVar("Key")
Interval = tuple[float, float]
Table = NDArray[np.float64]
_CHUNK = 500  # resamples held in memory at once
_GRIDS = (1, 840, 1000, 2520)  # steps of a unit: whole numbers, parts of 1 to 8, decimals, parts of 1 to 10
_WORK = 4e8  # additions for one exact p: a finer grid is made coarser, which only thousands of questions need


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95% interval of a mean: t+1 if every value is between 0 and 1, else Student's t."""
    if all(-ROUNDING <= value <= 1 + ROUNDING for value in values):
        return mean_interval(values)
    return unbounded_interval(values)


def mean_interval(
    values: Sequence[float], low: float = 0.0, high: float = 1.0, level: float = LEVEL
) -> Interval | None:
    """Return the t+1 interval of the mean of values between `low` and `high`; None without a value.

    A t interval of the data and two pseudo-observations, one at each bound, clipped to the bounds: n values
    have n + 1 degrees of freedom. It covers means near a bound, where n equal values exclude nothing (Agresti
    & Coull 1998, "Approximate is better than exact"; Bonett & Price 2012, "Adjusted Wald confidence interval
    for a difference of binomial proportions based on paired data"). Raises ValueError for a value outside the
    bounds.
    """
    if not len(values):
        return None
    ends = mean_intervals(np.asarray([values], dtype=float), low, high, level)[0]
    return float(ends[0]), float(ends[1])


def difference_interval(
    differences: Sequence[float], span: float = 1.0, level: float = LEVEL
) -> Interval | None:
    """Return the t+1 interval of a mean paired difference between -`span` and `span` (see mean_interval)."""
    return mean_interval(differences, -span, span, level)


def largest_interval(columns: Table, low: float, high: float, level: float = LEVEL) -> Interval:
    """Return an interval of the largest of several means, which values over the same questions have.

    `columns`: shape (means, questions), values between `low` and `high`. Its lower end is the largest one of
    the means' lower ends, corrected for their number (Bonferroni), because any of them may be too high; its
    upper end is the largest upper end, which is too low only if that of the largest mean is.
    """
    lows = mean_intervals(columns, low, high, 1 - (1 - level) / len(columns))[:, 0]
    return float(lows.max()), float(mean_intervals(columns, low, high, level)[:, 1].max())


def unbounded_interval(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Return Student's t interval of the mean of values without bounds, such as times; None below two."""
    if len(values) < 2:
        return None
    return _ends(*_student(values), level)


def _student(values: Sequence[float]) -> tuple[float, float, int]:
    """Return the mean of two values or more, its standard error, and the degrees of freedom."""
    column = np.asarray(values, dtype=float)
    error = column.std(ddof=1) / np.sqrt(len(column))
    return float(column.mean()), 0.0 if error < ROUNDING else float(error), len(column) - 1


def _ends(mean: float, error: float, freedom: int, level: float) -> Interval:
    from scipy.special import stdtrit

    half = error * float(stdtrit(freedom, (1 + level) / 2))
    return mean - half, mean + half


def mean_intervals(table: Table, low: float, high: float, level: float) -> Table:
    """Return the t+1 interval of each row of one value or more, shape (rows, 2)."""
    from scipy.special import stdtrit

    if np.any((table < low - ROUNDING) | (table > high + ROUNDING)):
        raise ValueError(f"a value is not between {low:g} and {high:g}")
    padded = np.pad(table, ((0, 0), (1, 1)), constant_values=(low, high))
    mean, count = padded.mean(axis=1), padded.shape[1]
    error = stdtrit(count - 1, (1 + level) / 2) * padded.std(axis=1, ddof=1) / np.sqrt(count)
    found: Table = np.clip(np.stack([mean - error, mean + error], axis=1), low, high)
    return found


def centre_and_half(
    n: int, mean: float, sd: float, low: float = -1.0, high: float = 1.0, level: float = LEVEL
) -> tuple[float, float]:
    """Return the middle of the t+1 interval (see mean_interval) and half its width, from `n` values between
    `low` and `high` with this mean and standard deviation.
    """
    from scipy.special import stdtrit

    centre = (n * mean + low + high) / (n + 2)
    squares = (n - 1) * sd**2 + n * (mean - centre) ** 2 + (low - centre) ** 2 + (high - centre) ** 2
    return centre, float(stdtrit(n + 1, (1 + level) / 2)) * sqrt(squares / (n + 1) / (n + 2))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the exact two-sided p of Fisher's randomisation test of paired differences (Fisher 1935).

    The share of all 2^n ways to exchange the two routes' values within questions in which the sum of
    differences is at least as far from 0 as the measured one. Sums are counted by convolution (Pagano &
    Tritchler 1983, "On obtaining permutation distributions in polynomial time"), on a grid that holds the
    differences exactly if one of _GRIDS does, and otherwise on a thousandth of the largest.
    """
    sizes = _on_grid(np.abs(np.asarray(differences, dtype=float)))
    signed = int(np.sum(np.where(np.asarray(differences) < 0, -sizes, sizes)))
    sizes = np.sort(sizes[sizes > 0])
    if signed == 0:
        return 1.0
    # With random signs the positive part is a sum of some of the sizes. By symmetry the two tails are equal;
    # the lower one is all sums up to this.
    most = (int(sizes.sum()) - abs(signed)) // 2
    chances = np.zeros(most + 1)
    chances[0], reached = 1.0, 0
    for size in sizes.tolist():
        last, reached = reached, min(most, reached + size)
        if size <= most:
            chances[size : reached + 1] += chances[: min(last, most - size) + 1].copy()
        chances[: reached + 1] *= 0.5
    return float(max(min(1.0, 2 * chances.sum()), np.finfo(float).tiny))


def _on_grid(sizes: Table) -> NDArray[np.int64]:
    """Return sizes, 0 or more, as whole steps of a grid (see sign_flip_p)."""
    work = len(sizes) * float(sizes.sum())  # for each step of a unit
    for steps in _GRIDS:
        whole = sizes * steps
        if work * steps <= _WORK and np.all(np.abs(whole - np.round(whole)) < ROUNDING * steps):
            return np.round(whole).astype(np.int64)
    finest = min(1000 / float(sizes.max()), _WORK / work)
    return np.round(sizes * finest).astype(np.int64)


def worse_than(table: Table, seed: int = SEED) -> Table:
    """Return p[i, j] that route i is worse than route j, adjusted for all pairs of routes; 1 if it is not
    behind.

    The sign-flip max-t test: the sign of each question's centred row of scores is flipped at random, for all
    routes together, and each pair's sum(d) / sqrt(sum(d^2)) is compared with the largest of all pairs
    (Westfall & Young 1993, "Resampling-based multiple testing"; Boytsov, Belova & Westfall 2013, "Deciding on
    an adjustment for multiplicity in IR experiments"). p shows that two routes differ; which mean is higher
    is shown by the interval alone.

    `table`: shape (routes, questions), NaN where a route has no value; pairs are compared over the questions
    both have.
    """
    routes = len(table)
    first, second = np.triu_indices(routes, 1)
    p = np.ones((routes, routes))
    if not len(first) or not table.shape[1]:
        return p
    apart = np.nan_to_num(table[first] - table[second])
    apart[np.abs(apart) < ROUNDING] = 0.0
    size = np.sqrt((apart**2).sum(axis=1))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    measured = np.abs(apart.sum(axis=1)) * scale
    largest = _largest_flipped(table, apart, scale, np.random.default_rng(seed))
    as_far = FLIPS - np.searchsorted(np.sort(largest), measured - ROUNDING)
    adjusted = (as_far + 1) / (FLIPS + 1)
    behind = np.sign(apart.sum(axis=1))
    p[first[behind < 0], second[behind < 0]] = adjusted[behind < 0]
    p[second[behind > 0], first[behind > 0]] = adjusted[behind > 0]
    return p


def _largest_flipped(table: Table, apart: Table, scale: Table, draw: np.random.Generator) -> Table:
    """Return the largest statistic of all pairs in each of FLIPS random flips."""
    largest = np.zeros(FLIPS)
    whole = not np.isnan(table).any()
    first, second = np.triu_indices(len(table), 1)
    for begin in range(0, FLIPS, _CHUNK):
        some = min(_CHUNK, FLIPS - begin)
        signs = draw.integers(0, 2, (some, table.shape[1])) * 2.0 - 1
        if whole:  # the sum of a pair is the difference of two routes' sums: far fewer products
            sums = table @ signs.T
            sums = sums[first] - sums[second]
        else:
            sums = apart @ signs.T
        largest[begin : begin + some] = (np.abs(sums) * scale[:, None]).max(axis=0)
    return largest


def least_to_show(comparisons: int = 1, alpha: float = ALPHA) -> int:
    """Return how many questions that differ are needed for any difference to be shown in such a family.

    All of them on one side have p = 2^(1 - n), which is to be at most `alpha` over `comparisons`.
    """
    return ceil(1 + log2(comparisons / alpha))


def least_for_equivalence(margin: float) -> int:
    """Return how many questions are needed to call two routes equivalent within `margin`: 60 at .05.

    Fewer than 3 / `margin` tied questions do not exclude a loss of the margin: a route that fails wholly on
    that share of questions fails on none of so many in exp(-3) = 5% of samples (the rule of three, Hanley &
    Lippman-Hand 1983, "If nothing goes wrong, is everything all right?").
    """
    return ceil(round(3 / margin, 6))


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The result of one paired comparison in a family of them; see `compare`."""

    # The larger of the exact sign-flip p and the p of the interval, not adjusted.
    p: float
    # Adjusted for the family (Holm).
    p_holm: float
    # Excludes 0 exactly if `p_holm` is below ALPHA; None without bounds and below two questions.
    interval: Interval | None
    # "better" or "worse" if the interval excludes 0, else "no difference shown".
    verdict: str


def compare(columns: Mapping[Key, Sequence[float]]) -> dict[Key, PairedComparison]:
    """Compare routes pairwise: paired differences by key, all of one family.

    A difference is shown if both the interval of its mean and the exact sign-flip test exclude 0, after
    Holm's correction (Holm 1979): the test alone also rejects if only the shapes differ, and the interval
    alone is too narrow for a handful of questions. Each interval has the level at which Holm's procedure
    tested the comparison (Serlin 1993, "Confidence intervals and the scientific method: a case for Holm on
    the range"), so the interval, p and the verdict always agree.

    Intervals are t+1 if all differences are between -1 and 1, as those of metrics between 0 and 1 are, and
    Student's t otherwise.
    """
    bounded = between_bounds(columns.values())
    known = {}
    for key, column in columns.items():
        values = [*column, -1.0, 1.0] if bounded and len(column) else column
        known[key] = _student(values) if len(values) > 1 else None
    p = {key: max(sign_flip_p(column), _interval_p(known[key])) for key, column in columns.items()}
    adjusted = holm(p)
    left, found = len(columns), {}
    for key in sorted(p, key=lambda one: p[one]):
        measured, ends = known[key], None
        if measured is not None:
            ends = _ends(*measured, 1 - ALPHA / left)
            ends = (max(-1.0, ends[0]), min(1.0, ends[1])) if bounded else ends
        if adjusted[key] < ALPHA:
            left -= 1
        elif ends is not None:
            ends = min(ends[0], 0.0), max(ends[1], 0.0)
        found[key] = PairedComparison(p[key], adjusted[key], ends, excluded(ends))
    return {key: found[key] for key in columns}


def between_bounds(columns: Iterable[Sequence[float]]) -> bool:
    """Return whether all differences are between -1 and 1, as those of metrics between 0 and 1."""
    return all(abs(value) <= 1 + ROUNDING for column in columns for value in column)


def excluded(ends: Interval | None) -> str:
    """Return the verdict that rests on the interval of a difference."""
    if ends is None or ends[0] <= 0 <= ends[1]:
        return "no difference shown"
    return "better" if ends[0] > 0 else "worse"


def _interval_p(measured: tuple[float, float, int] | None) -> float:
    """Return at which 1 - level an interval ends at 0."""
    from scipy.special import stdtr

    if measured is None:
        return 1.0
    mean, error, freedom = measured
    if error == 0:
        return 0.0 if abs(mean) > ROUNDING else 1.0
    return float(2 * stdtr(freedom, -abs(mean / error)))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values adjusted for their number (Holm 1979): smallest first, times those left, never falling."""
    adjusted: dict[Key, float] = {}
    floor = 0.0
    for place, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        floor = max(floor, min(1.0, (len(p_values) - place) * p))
        adjusted[key] = floor
    return adjusted


POWER = 0.8
FEASIBLE = 10_000  # questions that somebody may still label: at two minutes each two months of full work
_STEPS = 1 << 24  # of the search for a difference
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


def detectable(n: int, sd: float, *, alpha: float, bounded: bool) -> float:
    """Return the smallest true mean difference that is shown with probability POWER; inf if none is.

    See `power_of`.
    """
    ends, weights = _least_means(n, sd, alpha, 0.0, bounded)
    if not np.isfinite(ends).all():
        return float("inf")
    high = float(ends.max()) + 10 * sd / sqrt(n)
    if sd == 0:
        return float(ends.max())
    step = high / _STEPS
    found = bisect_left(range(_STEPS), POWER, key=lambda at: _chance(n, step * at, sd, ends, weights))
    return step * found


def needed(delta: float, sd: float, *, above: float = 0.0) -> int | None:
    """Return how many questions it takes to show that a true difference of `delta` is above `above`, with
    probability POWER (see `power_of`); None if more than FEASIBLE.

    With `above` at minus a margin this is the number that shows a loss of the margin to be excluded.
    """
    found = bisect_left(range(FEASIBLE + 1), POWER, 1, key=lambda n: power_of(n, delta, sd, above=above))
    return found if found <= FEASIBLE else None


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


Graded = tuple[str, int, int]  # a question, and the two grades of one of its passages


@dataclass(frozen=True, slots=True)
class Kappa:
    """A kappa with its interval. `value` is None if it is undefined: both graders gave one and the same grade
    throughout. `ci95`: the 95% percentile bootstrap interval; None with fewer than two questions, or if kappa
    is undefined in a resample.
    """

    value: float | None
    ci95: Interval | None


def kappa(
    graded: Sequence[Graded], levels: Sequence[int], weights: Literal["quadratic"] | None = None
) -> Kappa:
    """Cohen's kappa of two graders. For its interval (Efron 1979) questions are resampled, each with all its
    passages: what is judged for one question is not independent.

    Cohen 1960, "A coefficient of agreement for nominal scales"; quadratic weights: Cohen 1968, "Weighted
    kappa". ValueError for a grade that is not among `levels`.
    """
    from scipy.stats import bootstrap

    at = {question: n for n, question in enumerate(dict.fromkeys(one[0] for one in graded))}
    size, count = len(levels), len(at)
    cells = np.zeros((size, size, count))
    for question, first, second in graded:
        cells[levels.index(first), levels.index(second), at[question]] += 1
    # How much each pair of grades disagrees: 1 if they differ, or the square of their distance.
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weight = np.asarray(apart**2 if weights == "quadratic" else apart > 0, np.float64)

    def of(drawn: NDArray[Any], axis: int = -1) -> Table:  # noqa: ARG001
        """Kappa of each row of questions: 1 - observed disagreement / that of chance, both weighted."""
        times = np.stack([np.bincount(row, minlength=count) for row in drawn.astype(np.int64)], axis=1)
        tables = cells @ times
        with np.errstate(invalid="ignore", divide="ignore"):
            share = tables / tables.sum(axis=(0, 1))
            chance = share.sum(axis=1)[:, None] * share.sum(axis=0)[None]
            found: Table = 1 - np.tensordot(weight, share) / np.tensordot(weight, chance)
        return found

    whole = float(of(np.arange(count)[None])[0]) if at else np.nan
    value = whole if np.isfinite(whole) else None
    if count < 2:
        return Kappa(value, None)
    how: Any = {"vectorized": True, "n_resamples": RESAMPLES, "batch": 500, "method": "percentile"}
    ends = bootstrap((np.arange(count),), of, rng=SEED, **how).confidence_interval
    low, high = float(ends.low), float(ends.high)
    return Kappa(value, (low, high) if np.isfinite((low, high)).all() else None)


def auc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Return the area under the ROC curve; None unless both kinds occur."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, scores)) if len(set(positive)) == 2 else None
