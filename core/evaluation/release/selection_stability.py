"""How sure a decision is: how often each route would be chosen, had other questions been asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.analysis.latency_percentiles import NEEDED
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.losses import kinds
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.statistics import ALPHA, SEED

RESAMPLES = 2000
HOW = (
    f"the questions were drawn anew {RESAMPLES:,} times, with replacement, and the same rules applied to each"
    " draw; within a draw the randomisation test is done by its normal approximation"
)
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sureness:
    """Over so many bootstrap `resamples` of the `questions` (Efron 1979): the share in which each route is
    `chosen`, the share in which it `passes`, and the share in which `none` passes.
    """

    resamples: int
    questions: int
    chosen: Mapping[str, float]
    passes: Mapping[str, float]
    none: float


@dataclass(frozen=True, slots=True)
class Columns:
    """What the rules need of each question, by route: arrays of shape (routes, questions), NaN where a
    question has none. `kinds` has shape (kinds, questions): 1 where a question is of that kind.
    """

    routes: tuple[str, ...]
    baseline: int
    value: Numbers
    unjudged: Numbers
    ms: Numbers
    ok: Numbers
    calls: Numbers
    prompt: Numbers
    completion: Numbers
    kinds: Numbers


def sureness(measured: Measured, criteria: Criteria) -> Sureness | None:
    """None where the questions' values are not known, or the evaluation was not finished."""
    columns = None if measured.figures.get("interrupted") else columns_of(measured, criteria.metric)
    if columns is None:
        return None
    count = columns.ok.shape[1]
    drawn = np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count))
    passes, chosen = choices(columns, drawn, criteria, measured.prices)
    shares = {route: float(np.mean(chosen == nth)) for nth, route in enumerate(columns.routes)}
    held = {route: float(np.mean(passes[:, nth])) for nth, route in enumerate(columns.routes)}
    return Sureness(RESAMPLES, count, shares, held, float(np.mean(chosen < 0)))


def columns_of(measured: Measured, metric: str) -> Columns | None:
    """The columns of an evaluation; None without one, or where the metric is only known as a mean."""
    values, unjudged = measured.values(metric), measured.values(UNJUDGED)
    if measured.evaluation is None or values is None or unjudged is None:
        return None
    routes, outcomes = measured.routes, measured.evaluation.outcomes
    asked = [question for question in measured.evaluation.questions if question in outcomes]

    def of(found: Mapping[str, Mapping[str, float]]) -> Numbers:
        return np.array([[found[route].get(q, np.nan) for q in asked] for route in routes])

    def took(name: str) -> Numbers:
        return np.array([[float(getattr(outcomes[q][route], name)) for q in asked] for route in routes])

    ok = np.array([[float(outcomes[q][route].status == "ok") for q in asked] for route in routes])
    place = {question: nth for nth, question in enumerate(asked)}
    groups = np.zeros((len(kinds(measured)), len(asked)))
    for nth, questions in enumerate(kinds(measured).values()):
        groups[nth, [place[q] for q in questions if q in place]] = 1
    return Columns(
        routes, routes.index(measured.baseline), of(values), of(unjudged),
        np.where(ok > 0, took("ms"), np.nan), ok, took("calls"), took("prompt_tokens"),
        took("completion_tokens"), groups,
    )  # fmt: skip


def choices(
    columns: Columns,
    drawn: NDArray[np.int64],
    criteria: Criteria,
    prices: tuple[float | None, float | None] = (None, None),
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For each row of `drawn` (places of questions) which routes pass, shape (rows, routes), and which is
    chosen, -1 for none: the rules of core.evaluation.release.gate.decide.
    """
    count = columns.ok.shape[1]
    times = np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ended = times @ columns.ok.T
        mean, unjudged = _means(times, columns.value), _means(times, columns.unjudged)
        calls = times @ columns.calls.T / ended
        tokens, cost = _spent(times, columns, ended, prices)
        p50, p95 = _percentiles(columns.ms, drawn)
        p95[ended < NEEDED[95]] = np.nan
        limits: list[tuple[Numbers, float | None]] = [
            (-mean, None if criteria.minimum is None else -criteria.minimum),
            (p95, criteria.max_p95_ms), (cost, criteria.max_cost), (tokens, criteria.max_tokens),
            (calls, criteria.max_calls), (1 - ended / drawn.shape[1], criteria.max_failed),
            (unjudged, criteria.max_unjudged),
        ]  # fmt: skip
        passes = ~np.isnan(mean)
        for figure, limit in limits:
            if limit is not None:
                passes &= figure <= limit + 1e-12  # what is no number is not at most anything
        if criteria.no_loss:
            passes &= ~_lost(times, columns)
    expense = np.stack([np.where(np.isnan(cost), tokens, cost), calls, p50], axis=-1)
    expense = np.where(np.isnan(expense), np.inf, expense)
    return passes, _chosen(columns, times, passes, mean, expense, cheaper=criteria.cheaper)


def _chosen(
    columns: Columns,
    times: Numbers,
    passes: NDArray[np.bool_],
    mean: Numbers,
    expense: Numbers,
    *,
    cheaper: bool,
) -> NDArray[np.int64]:
    """The route chosen in each row; `expense` has shape (rows, routes, 3), compared one after the other."""
    spent, calls, p50 = np.moveaxis(expense, -1, 0)
    best = np.lexsort((p50, calls, spent, -mean, ~passes), axis=1)[:, 0]
    chosen = np.where(passes.any(axis=1), best, -1)
    for nth in np.unique(chosen[chosen >= 0]) if cheaper else ():
        rows = np.flatnonzero(chosen == nth)
        apart = columns.value - columns.value[nth]
        below = passes[rows] & _less(expense[rows], expense[rows, nth][:, None, :])
        sums, p = _tests(times[rows], apart)
        adjusted = _holm(np.where(below, p, np.nan))
        worse = (adjusted < ALPHA) & (sums < 0)
        equal = below & ~worse & ~np.isnan(p)
        equal[:, nth] = True
        keys = (-mean[rows], p50[rows], calls[rows], spent[rows], ~equal)
        best[rows] = np.lexsort(keys, axis=1)[:, 0]
    return np.where(chosen < 0, -1, best)


def _less(one: Numbers, other: Numbers) -> NDArray[np.bool_]:
    """Whether tuples along the last axis come before others: by the first place in which they differ."""
    found = np.zeros(np.broadcast_shapes(one.shape, other.shape)[:-1], dtype=bool)
    for nth in reversed(range(one.shape[-1])):
        found = (one[..., nth] < other[..., nth]) | ((one[..., nth] == other[..., nth]) & found)
    return found


def _lost(times: Numbers, columns: Columns) -> NDArray[np.bool_]:
    """Which routes are shown to be worse than the baseline at some kind of question, shape (rows, routes);
    a route that cannot be compared counts as one, except for the baseline.
    """
    routes, base = len(columns.routes), columns.baseline
    others = [nth for nth in range(routes) if nth != base]
    lost = np.zeros((len(times), routes), dtype=bool)
    if not others:
        return lost
    apart = columns.value[others] - columns.value[base]
    split = np.where(columns.kinds[:, None, :] > 0, apart[None], np.nan)  # kinds, others, questions
    sums, p = _tests(times, split.reshape(-1, split.shape[-1]))
    worse = (_holm(p) < ALPHA) & (sums < 0)
    known = times @ (~np.isnan(split)).reshape(-1, split.shape[-1]).T > 0
    shape = (len(times), len(columns.kinds), len(others))
    lost[:, others] = worse.reshape(shape).any(axis=1) | ~known.reshape(shape).any(axis=1)
    return lost


def _tests(times: Numbers, apart: Numbers) -> tuple[Numbers, Numbers]:
    """Sums of differences (rows of `apart`) and two-sided p, each of shape (len(times), len(apart)).

    Changing signs at random gives sums with mean 0 and the sum of squares as variance, which is taken to be
    normal; no p is below that of all signs alike, 2^(1-n).
    """
    from scipy.special import ndtr

    there = ~np.isnan(apart)
    filled = np.where(there, apart, 0.0)
    sums, squares, count = times @ filled.T, times @ (filled**2).T, times @ there.T
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * ndtr(-np.abs(sums) / np.sqrt(squares))
    p = np.where(squares > 0, np.maximum(p, 2.0 ** (1 - count)), 1.0)
    return sums, np.where(count > 0, p, np.nan)


def _holm(p: Numbers) -> Numbers:
    """p of each row adjusted for the number of tests in it (Holm 1979); NaN is no test."""
    order = np.argsort(p, axis=1)  # what is no number comes last
    tests = np.sum(~np.isnan(p), axis=1, keepdims=True)
    left = np.maximum(tests - np.arange(p.shape[1])[None], 1)
    ranked = np.minimum(1.0, np.take_along_axis(p, order, axis=1) * left)
    stepped = np.maximum.accumulate(np.where(np.isnan(ranked), 1.0, ranked), axis=1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, stepped, axis=1)
    return adjusted


def _means(times: Numbers, column: Numbers) -> Numbers:
    there = ~np.isnan(column)
    found: Numbers = times @ np.where(there, column, 0.0).T / (times @ there.T)
    return found


def _spent(
    times: Numbers, columns: Columns, ended: Numbers, prices: tuple[float | None, float | None]
) -> tuple[Numbers, Numbers]:
    """Tokens a question and price of 1,000, NaN where they cannot be told."""
    calls, prompt, completion = (
        times @ column.T for column in (columns.calls, columns.prompt, columns.completion)
    )
    tokens = np.where((calls > 0) & (prompt + completion == 0), np.nan, (prompt + completion) / ended)
    if prices[0] is None or prices[1] is None:
        return tokens, np.where(calls > 0, np.nan, 0.0 / ended)
    money = (prompt * prices[0] + completion * prices[1]) / 1e6
    return tokens, np.where(np.isnan(tokens), np.nan, 1000 * money / ended)


def _percentiles(ms: Numbers, drawn: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """The 50th and 95th percentile of each route's times in each draw, as numpy's: linear between two."""
    found = np.full((2, len(drawn), len(ms)), np.nan)
    for nth, column in enumerate(ms):
        taken = np.sort(column[drawn], axis=1)  # what is no number comes last
        count = np.sum(~np.isnan(taken), axis=1)
        some = count > 0
        for at, part in enumerate((0.5, 0.95)):
            where = part * (count[some] - 1)
            low = np.floor(where).astype(int)
            high = np.minimum(low + 1, count[some] - 1)
            rows = taken[some]
            one, two = rows[np.arange(len(rows)), low], rows[np.arange(len(rows)), high]
            found[at, some, nth] = one + (two - one) * (where - low)
    return found[0], found[1]
