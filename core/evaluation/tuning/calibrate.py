"""A threshold chosen on some questions by a stated rule, and what it is worth on others."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.domain.errors import BadInput
from core.evaluation.dataset import LabelledSet
from core.evaluation.statistics import RESAMPLES, SEED
from core.evaluation.tuning.targets import Acts, Judged, Target

Objective = Literal["f1", "balanced accuracy", "precision", "recall"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
WANTED: tuple[Objective, ...] = ("precision", "recall")  # those that need a wanted value
LEAST = 5  # cases of each kind, below which nothing is chosen or measured
HALVES = 1  # seed of the halves, where questions are of one split only
DIGITS = 12
UNDEFINED = 0.05  # share of resamples, above which an interval over the others would mislead
Counts = NDArray[np.float64]  # last axis: true positives, false positives, false negatives, true negatives
Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Split:
    """The questions to choose on and those held out. `made`: halves drawn by a seed, for lack of splits."""

    dev: frozenset[str]
    held_out: frozenset[str]
    made: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """A value over held-out cases with its 95 % percentile bootstrap interval (Efron 1979), resampled by
    question. None where it is not defined: precision, if the step acts on no case.
    """

    value: float | None
    interval: Interval = None


@dataclass(frozen=True, slots=True)
class Worth:
    """What a threshold does with cases: `acted` are those that it acts on, `right` those of them where that
    is right.
    """

    threshold: float
    n: int
    positive: int
    acted: int
    right: int
    precision: Measured
    recall: Measured
    f1: Measured
    balanced: Measured

    def of(self, objective: Objective) -> Measured:
        """The value that an objective is about."""
        return {
            "precision": self.precision, "recall": self.recall, "f1": self.f1,
            "balanced accuracy": self.balanced,
        }[objective]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calibration:
    """A chosen threshold. `positive` of its numbers are cases where acting is right: for a step that acts
    below its threshold those that are not positive.

    `chosen` and `shipped` are measured on `held_out` questions, `on_dev` on the `dev` questions it was chosen
    on. `difference` is that of the objective, chosen less shipped, with `p` two-sided, by exchange of the two
    decisions within each question (Fisher's randomisation test).
    """

    target: Target
    objective: Objective
    wanted: float | None
    threshold: float
    on_dev: Worth
    chosen: Worth
    shipped: Worth
    difference: Measured
    p: float
    dev: int
    held_out: int
    made: bool

    @property
    def shown(self) -> bool:
        """Whether chosen and shipped differ by more than chance: the interval of the difference leaves 0 out
        and p is below 0.05.
        """
        around = self.difference.interval
        return around is not None and (around[0] > 0 or around[1] < 0) and self.p < 0.05


def split(labelled: LabelledSet) -> Split:
    """The dev questions to choose on and the test questions held out; where it has not both, two halves of
    all questions, drawn with a fixed seed.
    """
    by = {name: frozenset(q.id for q in labelled.questions if q.split == name) for name in ("dev", "test")}
    if by["dev"] and by["test"]:
        return Split(by["dev"], by["test"], False)
    ids = sorted(question.id for question in labelled.questions)
    random.Random(HALVES).shuffle(ids)
    half = len(ids) // 2
    return Split(frozenset(ids[:half]), frozenset(ids[half:]), True)


def choose(
    cases: Sequence[Judged], acts: Acts = "from", objective: Objective = "f1", wanted: float | None = None
) -> float:
    """The threshold of the highest value of `objective` on `cases`; of equal ones the lowest.

    For "precision" (or "recall") the one of the highest recall (precision) of those with at least `wanted`.
    It lies midway between neighbouring scores, rounded as far as no decision changes. BadInput where a kind
    of case is missing, or no threshold reaches what is wanted.
    """
    if not any(case.positive for case in cases) or all(case.positive for case in cases):
        positive = sum(case.positive for case in cases)
        raise BadInput(f"{positive} of {len(cases)} cases are positive; a threshold needs both kinds")
    if (objective in WANTED) != (wanted is not None) or not 0 < (wanted or 1) <= 1:
        raise BadInput(f"wanted={wanted!r} for {objective}; give above 0 to 1 for precision and recall alone")
    edges, counts = tables(cases, acts)
    values = {name: rate(counts, name) for name in OBJECTIVES}
    if objective in WANTED:
        other: Objective = "recall" if objective == "precision" else "precision"
        reached = values[objective] >= (wanted or 0) - 1e-12
        if not reached.any():
            at = int(np.nanargmax(values[objective]))
            raise BadInput(
                f"no threshold reaches {objective} {wanted:g} on the questions it is chosen on: the most is"
                f" {values[objective][at]:.2f}, at {edges[at]:.3g}"
            )
        rank = np.where(reached, np.nan_to_num(values[other]), -1.0)
    else:
        rank = np.nan_to_num(values[objective])
    return float(edges[int(np.flatnonzero(rank >= rank.max() - 1e-12)[0])])


def tables(cases: Sequence[Judged], acts: Acts) -> tuple[NDArray[np.float64], Counts]:
    """All thresholds that decide differently, ascending, shape (t,), and their counts, shape (t, 4)."""
    from sklearn.metrics import confusion_matrix_at_thresholds

    tn, fp, fn, tp, scores = confusion_matrix_at_thresholds(
        [case.positive for case in cases], [case.score for case in cases]
    )
    from_here = np.column_stack([tp, fp, fn, tn])[::-1].astype(np.float64)
    values = scores[::-1]
    edges = [tidy(None, float(values[0])), *(tidy(float(a), float(b)) for a, b in pairwise(values))]
    edges.append(tidy(float(values[-1]), float(values[-1]) + 0.01))  # above every score
    kinds = from_here[0, :2]
    from_here = np.vstack([from_here, [0.0, 0.0, *kinds]])
    return np.array(edges), turned(from_here) if acts == "below" else from_here


def turned(counts: Counts) -> Counts:
    """Counts of the step that acts below its threshold, where acting is right on what is not positive."""
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)
    return np.stack([tn, fn, fp, tp], axis=-1)


def tidy(below: float | None, score: float) -> float:
    """The shortest decimal near the middle of (below, score]; without `below` one at or under `score`."""
    middle = score if below is None else (below + score) / 2
    for digits in range(2, DIGITS):
        short = math.floor(score * 10**digits) / 10**digits if below is None else round(middle, digits)
        if short <= score and (below is None or short > below):
            return short
    return middle if below is None or below < middle else score


def counts_at(cases: Sequence[Judged], acts: Acts, threshold: float) -> tuple[list[str], Counts]:
    """The questions of `cases`, and the counts of each at a threshold, shape (questions, 4)."""
    order = {id: at for at, id in enumerate(dict.fromkeys(case.question for case in cases))}
    found = np.zeros((len(order), 4))
    for case in cases:
        kind = (0 if case.score >= threshold else 2) + (0 if case.positive else 1)
        found[order[case.question], kind] += 1
    return list(order), turned(found) if acts == "below" else found


def rate(counts: Counts, objective: Objective) -> NDArray[np.float64]:
    """An objective from counts, shape (..., 4) to (...); NaN where it is not defined."""
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if objective == "precision":
            return np.asarray(tp / (tp + fp))
        if objective == "recall":
            return np.asarray(tp / (tp + fn))
        if objective == "f1":
            return np.asarray(2 * tp / (2 * tp + fp + fn))
        return np.asarray((tp / (tp + fn) + tn / (tn + fp)) / 2)


def worth(cases: Sequence[Judged], acts: Acts, threshold: float) -> Worth:
    """What a threshold is worth on `cases`."""
    questions, counts = counts_at(cases, acts, threshold)
    draws = _resampled(counts) if len(questions) > 1 else None
    tp, fp, fn, _ = counts.sum(axis=0)

    def measured(objective: Objective) -> Measured:
        drawn = None if draws is None else rate(draws, objective)
        return Measured(_defined(rate(counts.sum(axis=0), objective)), _interval(drawn))

    return Worth(
        threshold, len(cases), int(tp + fn), int(tp + fp), int(tp), measured("precision"), measured("recall"),
        measured("f1"), measured("balanced accuracy"),
    )  # fmt: skip


def calibrate(target: Target, parts: Split, objective: Objective, wanted: float | None = None) -> Calibration:
    """The threshold chosen on `parts.dev` by `objective`, and what it is worth on `parts.held_out`.

    Nothing of the held-out questions enters the choice. BadInput, with the numbers, where a part has fewer
    than 5 cases of a kind, or no threshold reaches what is wanted.
    """
    dev = [case for case in target.cases if case.question in parts.dev]
    held = [case for case in target.cases if case.question in parts.held_out]
    for name, some in (("questions to choose on", dev), ("held-out questions", held)):
        _enough(name, some, target)
    threshold = choose(dev, target.acts, objective, wanted)
    chosen, shipped = (worth(held, target.acts, one) for one in (threshold, target.shipped))
    difference, p = compared(held, target.acts, threshold, target.shipped, objective)
    return Calibration(
        target, objective, wanted, threshold, worth(dev, target.acts, threshold), chosen, shipped, difference,
        p, len({case.question for case in dev}), len({case.question for case in held}), parts.made,
    )  # fmt: skip


def compared(
    cases: Sequence[Judged], acts: Acts, threshold: float, other: float, objective: Objective
) -> tuple[Measured, float]:
    """The difference of an objective between two thresholds on the same cases, paired, and its p."""
    from scipy.stats import permutation_test

    (questions, one), (_, two) = (counts_at(cases, acts, at) for at in (threshold, other))
    now, then = (rate(counts.sum(axis=0), objective) for counts in (one, two))
    if (one == two).all():
        return Measured(0.0 if _defined(now) is not None else None, (0.0, 0.0)), 1.0
    value = _defined(now - then)
    if value is None or len(questions) < 2:
        return Measured(value), 1.0
    draws = rate(_resampled(one), objective) - rate(_resampled(two), objective)
    both = np.concatenate([one, two])
    n = len(questions)

    def statistic(x: NDArray[np.int64], y: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
        first, second = (rate(both[at].sum(axis=-2), objective) for at in (x, y))
        return np.nan_to_num(first - second)  # an exchange that leaves it undefined shows no difference

    p = permutation_test(
        (np.arange(n), np.arange(n, 2 * n)), statistic, permutation_type="samples", vectorized=True,
        n_resamples=RESAMPLES, batch=500, rng=SEED,
    ).pvalue  # fmt: skip
    return Measured(value, _interval(draws)), float(p)


def _enough(name: str, cases: Sequence[Judged], target: Target) -> None:
    positive = sum(case.positive for case in cases)
    for count, told in ((positive, "where"), (len(cases) - positive, "where it is not so that")):
        if count < LEAST:
            raise BadInput(
                f"the {name} have {count} {target.unit}{'' if count == 1 else 's'} {told} {target.positive};"
                f" at least {LEAST} are needed to say anything"
            )


def _resampled(counts: Counts) -> Counts:
    """Sums over questions drawn with replacement, shape (resamples, 4); the same draws for the same n."""
    return np.asarray(_drawn(len(counts)).astype(np.float64) @ counts)


@lru_cache(maxsize=2)  # one calibration draws for its dev and its held-out questions, five times in all
def _drawn(n: int) -> NDArray[np.uint16]:
    return np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.uint16)


def _interval(drawn: NDArray[np.float64] | None) -> Interval:
    """The middle 95 % of the resamples; None where the value is not defined in more than 1 of 20."""
    if drawn is None or np.isnan(drawn).mean() > UNDEFINED:
        return None
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _defined(value: NDArray[np.float64]) -> float | None:
    return None if np.isnan(value) else float(value)
