"""How many more labelled questions would settle a comparison of two routes, with an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, inf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.evaluation.effects import POWER, SAME, effect
from core.evaluation.finding import count, ends, number
from core.evaluation.power import FEASIBLE, needed, rounded
from core.evaluation.statistics import ALPHA, RESAMPLES, SEED, interval, paired_ps

# Share of the better mean below which a difference is of no account: Spärck Jones 1974 ("Automatic indexing",
# J. Documentation 30), the fuzziness value of Buckley & Voorhees 2000 ("Evaluating evaluation measure
# stability").
NEGLIGIBLE = 0.05
State = Literal["settled", "practically equal", "more", "no number"]
_CHUNK = 500  # resamples held in memory at once


@dataclass(frozen=True, slots=True)
class MoreLabels:
    """The comparison of `route` with `other`, over the `n` questions both have: `delta` their mean difference
    with its interval, `sd` of the differences, `alpha` after correction for `comparisons`.

    `more`: the questions beyond `n` at which the paired test would show `delta` with power 0.8, `low` and
    `high` its 95 % interval; None: no feasible number, as the difference may be 0. "settled": the test shows
    the difference already. "practically equal": its interval is within `margin` on both sides, so that the
    cheaper one can be taken and no number of labels is needed.
    """

    route: str
    other: str
    state: State
    n: int
    delta: float
    ci95: tuple[float, float] | None
    sd: float
    margin: float
    alpha: float
    comparisons: int
    more: int | None = None
    low: int | None = None
    high: int | None = None

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "ci95": list(self.ci95) if self.ci95 else None}


def between(
    mine: Mapping[str, float], theirs: Mapping[str, float], route: str, other: str, *, comparisons: int = 1
) -> MoreLabels | None:
    """For `route` and `other` with these values by question, one of so many `comparisons` (Holm asks alpha
    over them of the smallest p); None below two questions in common.
    """
    apart = [mine[question] - theirs[question] for question in mine if question in theirs]
    if len(apart) < 2:
        return None
    one, interval_, alpha = effect(apart), interval(apart), ALPHA / comparisons
    n, delta, sd = one["n"], one["delta"], one["sd"]
    margin = NEGLIGIBLE * max(abs(sum(by.values()) / len(by)) for by in (mine, theirs))
    known = (n, delta, interval_, sd, margin, alpha, comparisons)
    if abs(delta) > SAME and paired_ps([apart])[0] < alpha:
        return MoreLabels(route, other, "settled", *known)
    if interval_ is not None and -margin <= interval_[0] and interval_[1] <= margin:
        return MoreLabels(route, other, "practically equal", *known)
    totals = (needed(delta, sd, alpha=alpha), *_interval(apart, alpha))
    more, low, high = (_beyond(total, n) for total in totals)
    return MoreLabels(route, other, "no number" if more is None else "more", *known, more, low, high)


def sentence(found: MoreLabels, named: Callable[[str], str] = str) -> str:
    """What it comes to, in one sentence."""
    one, other = named(found.route), named(found.other)
    apart = f"{number(found.delta, signed=True)}, {ends(found.ci95, signed=True)}, {count(found.n)}"
    if found.state == "settled":
        return f"No more labels are needed between {one} and {other}: the difference is shown ({apart})."
    if found.state == "practically equal":
        return (
            f"No more labels are needed: {one} and {other} are practically equal ({apart}; within "
            f"{NEGLIGIBLE:.0%} of the better mean), so the cheaper one can be taken."
        )
    if found.more is None:
        return (
            f"No feasible number of labels (up to {FEASIBLE:,} more questions) would settle {one} against "
            f"{other}: the difference may be 0 ({apart})."
        )
    span = f"{_told(found.low)} to {_told(found.high)}" if found.high is not None else (
        f"from {_told(found.low)}, without an upper end: the difference may be 0"
    )  # fmt: skip
    corrected = f", corrected for {found.comparisons} comparisons" if found.comparisons > 1 else ""
    questions = "question" if found.more == 1 else "questions"
    return (
        f"About {_told(found.more)} more labelled {questions} would settle {one} against {other} "
        f"(95% interval "
        f"{span}; power {POWER:.0%}{corrected})."
    )


def _told(value: int | None) -> str:
    return f"{rounded(value or 0):,}"


def _interval(apart: Sequence[float], alpha: float) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the questions needed, over the paired differences.

    A resample in which the difference is 0 or has the other sign would never show it: infinite. So the upper
    end is infinite where the interval of the difference has 0 in it.
    """
    column = np.asarray(apart, dtype=float)
    way = np.sign(column.mean())
    totals: list[NDArray[np.float64]] = []
    for means, sds in _resamples(column):
        with np.errstate(divide="ignore", invalid="ignore"):
            part = needed(1.0, 1.0, alpha=alpha) * (sds / means) ** 2
        totals.append(np.where((np.sign(means) == way) & (abs(means) > SAME), part, inf))
    ordered = np.sort(np.concatenate(totals))  # by rank: between a number and infinity lies nothing
    low, high = (ordered[ceil(part * (RESAMPLES + 1)) - 1] for part in (0.025, 0.975))
    return float(low), float(high)


def _resamples(column: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Means and standard deviations of resamples with replacement, as many as intervals are made of."""
    draw = np.random.default_rng(SEED)
    for begin in range(0, RESAMPLES, _CHUNK):
        drawn = column[draw.integers(0, len(column), (min(_CHUNK, RESAMPLES - begin), len(column)))]
        yield np.round(drawn.mean(axis=1), 12), drawn.std(axis=1, ddof=1)


def _beyond(total: float, n: int) -> int | None:
    """Beyond those at hand, at least one; None from FEASIBLE on."""
    return None if total - n > FEASIBLE else max(1, ceil(total - n))
