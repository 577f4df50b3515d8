"""How sure a decision is: how often each route would be chosen, had other questions been asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.analysis.latency_percentiles import NEEDED
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.losses import kinds
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.release.rule import Rival, RouteFigures, choose, spent
from core.evaluation.statistics import SEED, holm, verdict

RESAMPLES = 2000
HOW = (
    f"the questions were resampled {RESAMPLES:,} times, with replacement, and the gate decided on each"
    " resample; within a resample, the randomisation test uses its normal approximation"
)
Numbers = NDArray[np.float64]
Test = tuple[float, float]  # mean difference, p


@dataclass(frozen=True, slots=True)
class SelectionStability:
    """Over so many bootstrap `resamples` of the `questions` (Efron 1979): the share in which each route is
    `chosen`, the share in which it `passes`, and the share in which `none` passes.
    """

    resamples: int
    questions: int
    chosen: Mapping[str, float]
    passes: Mapping[str, float]
    none: float


@dataclass(frozen=True, slots=True)
class Resample:
    """What the rule needs of one resample: the figures of each route, and the tests of two routes' values,
    the first minus the second, where they share a question.
    """

    rows: tuple[RouteFigures, ...]
    tests: Mapping[tuple[str, str], Test]

    def against(self, best: RouteFigures, cheaper: Sequence[RouteFigures]) -> list[Rival]:
        """The cheaper routes against the best, one Holm family."""
        known = {one.route: self._test(one.route, best.route) for one in cheaper}
        adjusted = holm({route: test[1] for route, test in known.items() if test is not None})
        return [
            Rival(route, "cannot be told" if test is None else verdict(test[0], adjusted[route]))
            for route, test in known.items()
        ]

    def _test(self, one: str, other: str) -> Test | None:
        turned = self.tests.get((other, one))
        return self.tests.get((one, other)) if turned is None else (-turned[0], turned[1])


def sureness(measured: Measured, criteria: Criteria) -> SelectionStability | None:
    """None where the questions' values are not known, or the evaluation was not finished."""
    asked = asked_of(measured)
    if not asked or measured.figures.get("interrupted") or measured.values(criteria.metric) is None:
        return None
    drawn = np.random.default_rng(SEED).integers(0, len(asked), (RESAMPLES, len(asked)))
    passes, chosen = dict.fromkeys(measured.routes, 0), dict.fromkeys(measured.routes, 0)
    for one in resamples(measured, criteria, drawn):
        choice = choose(one.rows, criteria, one.against)
        for row in choice.passing:
            passes[row.route] += 1
        if choice.chosen is not None:
            chosen[choice.chosen.route] += 1
    none = RESAMPLES - sum(chosen.values())
    return SelectionStability(
        RESAMPLES, len(asked), {route: count / RESAMPLES for route, count in chosen.items()},
        {route: count / RESAMPLES for route, count in passes.items()}, none / RESAMPLES,
    )  # fmt: skip


def asked_of(measured: Measured) -> list[str]:
    """The questions that are resampled, in order; none where only the figures are known."""
    found = measured.evaluation
    return [] if found is None else [question for question in found.questions if question in found.outcomes]


def resamples(measured: Measured, criteria: Criteria, drawn: NDArray[np.int64]) -> list[Resample]:
    """The figures of each row of `drawn`, places in `asked_of`; worked out for all rows together.

    The same as the measured figures, but for the tests, which are the normal approximation of `_tests`.
    """
    asked, routes, evaluation = asked_of(measured), measured.routes, measured.evaluation
    values, unjudged = measured.values(criteria.metric), measured.values(UNJUDGED)
    if evaluation is None or values is None or unjudged is None:
        return []
    outcomes = [[evaluation.outcomes[q][route] for q in asked] for route in routes]
    times = np.stack([np.bincount(row, minlength=len(asked)) for row in drawn])

    def column(found: Mapping[str, Mapping[str, float]]) -> Numbers:
        return np.array([[found[route].get(q, np.nan) for q in asked] for route in routes])

    def total(name: str) -> list[list[int]]:
        counts: Any = times @ np.array([[getattr(one, name) for one in row] for row in outcomes]).T
        return counts.tolist()  # type: ignore[no-any-return]

    scored = column(values)
    ok = np.array([[one.status == "ok" for one in row] for row in outcomes])
    timed = ok & (not measured.timed(criteria).untimed)
    ms = np.where(timed, [[one.ms for one in row] for row in outcomes], np.nan)
    ended = times @ ok.T
    ordered = np.sort(ms.T[drawn], axis=1)  # rows, questions, routes; what is no number comes last
    means, shares = _known(_means(times, scored)), _known(_means(times, column(unjudged)))
    p50, p95 = (_known(percentile(ordered, ended, part)) for part in (0.5, 0.95))
    calls, prompt, completion = (total(name) for name in ("calls", "prompt_tokens", "completion_tokens"))
    lost = _lost(measured, times, scored, asked) if criteria.no_loss else [[0] * len(routes)] * len(drawn)
    pairs = list(combinations(range(len(routes)), 2)) if criteria.cheaper else []
    apart = np.array([scored[one] - scored[other] for one, other in pairs]).reshape(-1, len(asked))
    names = [(routes[one], routes[other]) for one, other in pairs]
    tests = _tests(times, apart)
    made = []
    for nth, well in enumerate(ended.tolist()):
        rows = []
        for at, route in enumerate(routes):
            each, tokens, cost = spent(
                calls[nth][at], prompt[nth][at], completion[nth][at], well[at], measured.prices
            )
            rows.append(RouteFigures(
                route, means[nth][at], p50[nth][at], p95[nth][at] if well[at] >= NEEDED[95] else None,
                tokens, each, cost, (len(asked) - well[at]) / len(asked), shares[nth][at], lost[nth][at],
                False,
            ))  # fmt: skip
        made.append(Resample(tuple(rows), dict(_there(names, tests[nth]))))
    return made


def percentile(ordered: Numbers, ended: NDArray[np.int64], part: float) -> Numbers:
    """Of the first `ended` of the values along axis 1, which are in order: linear between two, as numpy's."""
    where = part * (np.maximum(ended, 1) - 1)
    low = np.floor(where).astype(int)
    high = np.minimum(low + 1, np.maximum(ended, 1) - 1)
    one, two = (np.take_along_axis(ordered, at[:, None, :], axis=1)[:, 0] for at in (low, high))
    found: Numbers = one + (two - one) * (where - low)
    return found


def _lost(
    measured: Measured, times: NDArray[np.int64], scored: Numbers, asked: Sequence[str]
) -> list[list[int | None]]:
    """For each resample and route, at how many kinds of question it is shown to be worse than the baseline;
    None where it can be compared at none. All kinds and routes are one Holm family.
    """
    base = measured.routes.index(measured.baseline)
    place = {question: nth for nth, question in enumerate(asked)}
    within = [[place[q] for q in questions if q in place] for questions in kinds(measured).values()]
    keys = [(kind, at) for kind in range(len(within)) for at in range(len(scored)) if at != base]
    apart = np.full((len(keys), len(asked)), np.nan)
    for row, (kind, at) in zip(apart, keys, strict=True):
        row[within[kind]] = (scored[at] - scored[base])[within[kind]]
    found: list[list[int | None]] = []
    for tests in _tests(times, apart):
        known = dict(_there(keys, tests))
        adjusted = holm({key: test[1] for key, test in known.items()})
        counts: list[int | None] = [0 if at == base else None for at in range(len(scored))]
        for (kind, at), (delta, _) in known.items():
            counts[at] = (counts[at] or 0) + (verdict(delta, adjusted[kind, at]) == "worse")
        found.append(counts)
    return found


def _tests(times: NDArray[np.int64], apart: Numbers) -> list[list[Test]]:
    """Mean and two-sided p of differences (rows of `apart`) in each resample; p is NaN without a question.

    Changing signs at random gives sums with mean 0 and the sum of squares as variance, which is taken to be
    normal; no p is below that of all signs alike, 2^(1-n).
    """
    from scipy.special import ndtr

    there = ~np.isnan(apart)
    filled = np.where(there, apart, 0.0)
    sums, squares, count = times @ filled.T, times @ (filled**2).T, times @ there.T
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * ndtr(-np.abs(sums) / np.sqrt(squares))
        means = np.round(sums / count, 12)
    p = np.where(squares > 0, np.maximum(p, 2.0 ** (1 - count)), 1.0)
    p = np.where(count > 0, p, np.nan)
    return [list(zip(*row, strict=True)) for row in zip(means.tolist(), p.tolist(), strict=True)]


def _there(keys: Sequence[Any], tests: Sequence[Test]) -> list[tuple[Any, Test]]:
    """The tests that there are: those whose p is a number."""
    return [(key, test) for key, test in zip(keys, tests, strict=True) if test[1] == test[1]]


def _means(times: NDArray[np.int64], column: Numbers) -> Numbers:
    """Rounded, so that the order of summing decides nothing."""
    there = ~np.isnan(column)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = np.round(times @ np.where(there, column, 0.0).T / (times @ there.T), 12)
    return found


def _known(found: Numbers) -> list[list[float | None]]:
    """The numbers as Python's, None for what is none."""
    return [[None if value != value else value for value in row] for row in found.tolist()]
