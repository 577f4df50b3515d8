"""A threshold chosen on some questions by a stated rule, and what it is worth on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.domain.errors import BadInput
from core.evaluation.calibration import (
    OBJECTIVES,
    Acts,
    Counts,
    Objective,
    Reliability,
    choose,
    rate,
    reliability,
    turned,
)
from core.evaluation.finding import NONE, SAME, Finding, sentence
from core.evaluation.statistics import RESAMPLES, SEED
from core.evaluation.templating import say
from core.evaluation.tuning.sweep_split import Split
from core.evaluation.tuning.threshold_cases import Judged, Target

MOST = 400  # points of a curve that are drawn
NAMES: dict[Objective, str] = {name: name for name in OBJECTIVES} | {"f1": "F1"}
LEAST = 5  # cases of each kind, below which nothing is chosen or measured
UNDEFINED = 0.05  # share of resamples, above which an interval over the others would mislead
Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A value over held-out cases with its 95% percentile bootstrap interval (Efron 1979), resampled by
    question. None where it is not defined: precision, if the step acts on no case.
    """

    value: float | None
    interval: Interval = None


@dataclass(frozen=True, slots=True)
class Worth:
    """The effect of a threshold on cases: `acted` counts those that it acts on, `right` those of them for
    which acting is right.
    """

    threshold: float
    n: int
    positive: int
    acted: int
    right: int
    of: Mapping[Objective, Measured]


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
        """Return whether chosen and shipped differ by more than chance: the interval of the difference
        excludes 0 and p is below 0.05.
        """
        around = self.difference.interval
        return around is not None and (around[0] > 0 or around[1] < 0) and self.p < 0.05


def counts_at(cases: Sequence[Judged], acts: Acts, threshold: float) -> tuple[list[str], Counts]:
    """Return the questions of `cases`, and the counts of each at a threshold, shape (questions, 4)."""
    order = {id: at for at, id in enumerate(dict.fromkeys(case.question for case in cases))}
    found = np.zeros((len(order), 4))
    for case in cases:
        kind = (0 if case.score >= threshold else 2) + (0 if case.positive else 1)
        found[order[case.question], kind] += 1
    return list(order), turned(found) if acts == "below" else found


def worth(cases: Sequence[Judged], acts: Acts, threshold: float) -> Worth:
    """Measure a threshold on `cases`."""
    questions, counts = counts_at(cases, acts, threshold)
    draws = _resampled(counts) if len(questions) > 1 else None
    tp, fp, fn, _ = counts.sum(axis=0)

    of = {
        name: Measured(
            _defined(rate(counts.sum(axis=0), name)), _interval(None if draws is None else rate(draws, name))
        )
        for name in OBJECTIVES
    }
    return Worth(threshold, len(cases), int(tp + fn), int(tp + fp), int(tp), of)


def calibrate(target: Target, parts: Split, objective: Objective, wanted: float | None = None) -> Calibration:
    """Return the threshold chosen on `parts.chosen_on` by `objective`, and what it is worth on
    `parts.held_out`.

    Nothing of the held-out questions enters the choice. BadInput, with the numbers, where a part has fewer
    than 5 cases of a kind, or no threshold reaches what is wanted.
    """
    chosen_on, held_out = set(parts.chosen_on), set(parts.held_out)
    dev = [case for case in target.cases if case.question in chosen_on]
    held = [case for case in target.cases if case.question in held_out]
    unit = "piece" if target.unit == "strip" else target.unit
    for name, some in (("questions to choose on", dev), ("held-out questions", held)):
        positive = sum(case.positive for case in some)
        for count, where in ((positive, "where"), (len(some) - positive, "where it is not true that")):
            if count < LEAST:
                raise BadInput(
                    f"the {name} have {count} {unit}{'' if count == 1 else 's'} {where} {target.positive};"
                    f" at least {LEAST} are needed"
                )
    scores, right = [case.score for case in dev], [case.positive for case in dev]
    threshold = choose(scores, right, target.acts, objective, wanted)
    chosen, shipped = (worth(held, target.acts, one) for one in (threshold, target.shipped))
    difference, p = compared(held, target.acts, threshold, target.shipped, objective)
    return Calibration(
        target,
        objective,
        wanted,
        threshold,
        worth(dev, target.acts, threshold),
        chosen,
        shipped,
        difference,
        p,
        len({case.question for case in dev}),
        len({case.question for case in held}),
        parts.made,
    )


def compared(
    cases: Sequence[Judged], acts: Acts, threshold: float, other: float, objective: Objective
) -> tuple[Measured, float]:
    """Return the difference of an objective between two thresholds on the same cases, paired, and its p."""
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
        (np.arange(n), np.arange(n, 2 * n)),
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=SEED,
    ).pvalue
    return Measured(value, _interval(draws)), float(p)


def _resampled(counts: Counts) -> Counts:
    """Return sums over questions drawn with replacement, shape (resamples, 4); the same draws for the same
    n.
    """
    return np.asarray(_drawn(len(counts)).astype(np.float64) @ counts)


@lru_cache(maxsize=2)  # one calibration draws for its dev and its held-out questions, five times in all
def _drawn(n: int) -> NDArray[np.uint16]:
    return np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.uint16)


def _interval(drawn: NDArray[np.float64] | None) -> Interval:
    """Return the middle 95% of the resamples, or None if the value is not defined in more than 1 of 20."""
    if drawn is None or np.isnan(drawn).mean() > UNDEFINED:
        return None
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _defined(value: NDArray[np.float64]) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall at each threshold, ascending; of the step that acts below its threshold, on the
    scores up to and with it.
    """

    thresholds: tuple[float, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]


def curve(cases: Sequence[Judged], acts: Acts) -> Curve | None:
    """Return the curve over `cases`, of at most 400 of its points, or None if no case is one to act on."""
    from sklearn.metrics import precision_recall_curve

    sign = 1 if acts == "from" else -1
    right = [case.positive == (acts == "from") for case in cases]
    if not any(right):
        return None
    precision, recall, thresholds = precision_recall_curve(right, [sign * case.score for case in cases])
    step = -(-len(thresholds) // MOST)
    kept = range(0, len(thresholds), step)[::sign]
    return Curve(
        tuple(sign * float(thresholds[at]) for at in kept),
        tuple(float(precision[at]) for at in kept),
        tuple(float(recall[at]) for at in kept),
    )


def reliable(target: Target, cases: Sequence[Judged]) -> Reliability | None:
    """Return the calibration of the scores as probabilities, or None if they are not meant as
    probabilities.
    """
    if not target.probability or not cases or not all(0 <= case.score <= 1 for case in cases):
        return None
    return reliability([case.score for case in cases], [case.positive for case in cases])


def about(target: Target) -> str:
    """Describe the calibrated threshold."""
    return say("calibration.about", target)


def in_words(found: Calibration) -> str:
    """Return the finding in a few sentences: the threshold and its figures on held-out questions, next to
    those of the one in use.
    """
    return say("calibration.found", found, difference(found))


def difference(found: Calibration) -> str:
    """Return the chosen threshold against the one in use, in the objective."""
    by, same = found.difference, found.threshold == found.shipped.threshold
    if by.value is None:
        return f"They cannot be compared: the {NAMES[found.objective]} of one of them is undefined."
    verdict = SAME if same else NONE if not found.shown else "better" if by.value > 0 else "worse"
    numbers = (by.value, by.interval, found.p, found.held_out)
    made = Finding("the chosen threshold", NAMES[found.objective], *numbers, None, "the one in use", verdict)
    return sentence(replace(made, unit="held-out questions"))


def halves(found: Calibration) -> str:
    """Return a sentence on how the questions were divided if they have no splits, or "" if they have."""
    if not found.made:
        return ""
    return (
        "The evaluation lacks dev or test questions, so they were split into two halves with a fixed "
        "seed. If they are test questions, do not report figures on them for a threshold chosen here."
    )


def left_out(target: Target, total: int) -> str:
    """Return the part of `total` questions that is excluded, and why, or "" if none is."""
    return say("calibration.left_out", target, total - sum(target.stored.values()))


def reliability_in_words(target: Target) -> str:
    """Return a sentence on whether the scores can be read as probabilities, over all cases."""
    found = reliable(target, target.cases)
    if found is None:
        return "These scores are not meant as probabilities, so their calibration is not measured."
    return (
        f"Over all {found.n:,} cases, scores differ from the share of correct cases by {found.ece:.2f} on"
        f" average (expected calibration error); Brier score {found.brier:.3f}."
    )


def note(found: Calibration, evaluation: str) -> str:
    """Return a note on the origin of a saved threshold."""
    return f"{in_words(found)} Evaluation {evaluation}, route {found.target.route}, “{found.target.step}”."
