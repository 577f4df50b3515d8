"""Means over questions, differences between routes with their size and what would have been detected, and the
questions on which routes differ or return the same. A question to which a metric does not apply is not
counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, isnan, sqrt
from statistics import fmean, median
from typing import Any

import numpy as np

from core.analysis.rank_overlap import jaccard, mean_overlaps
from core.evaluation import statistics
from core.evaluation.outcome import Outcomes
from core.evaluation.statistics import (
    ALPHA,
    LEVEL,
    POWER,
    Interval,
    Key,
    between_bounds,
    compare,
    excluded,
    least_to_show,
)

EVERY = "all questions"  # the one kind of a set whose questions have none
Column = Mapping[str, float]  # question -> value
Kinds = Mapping[str, Sequence[str]]  # kind -> its questions


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference `route` minus `other`, paired by question, with its "t+1" interval."""

    route: str
    other: str
    # questions on which both were scored
    n: int
    delta: float
    low: float
    high: float
    # standard deviation of the differences; None below two questions
    sd: float | None = None
    # of the interval: .95 unless several comparisons are one family
    level: float = LEVEL
    # the kind of question that it is over
    mode: str = EVERY
    # so few questions that not even a loss on all of them could be shown
    blind: bool = False

    @property
    def verdict(self) -> str:
        """Return the conclusion from the interval."""
        return excluded((self.low, self.high))


def pair(
    route: str, other: str, differences: Sequence[float], level: float = LEVEL, mode: str = EVERY
) -> Difference | None:
    """Compare two routes by their differences on each question; None without any."""
    if not differences:
        return None
    n = len(differences)
    delta = sum(differences) / n
    squares = sum((value - delta) ** 2 for value in differences)
    return from_summary(route, other, n, delta, sqrt(squares / (n - 1)) if n > 1 else None, level, mode)


def from_summary(
    route: str, other: str, n: int, delta: float, sd: float | None, level: float = LEVEL, mode: str = EVERY
) -> Difference | None:
    """Compare two routes by n, mean and standard deviation of their differences, each between -1 and 1.

    The interval is `core.evaluation.statistics.difference_interval`, of which these three are all it needs.
    """
    if n < 1 or (n > 1 and sd is None):
        return None
    low, high = _ends(n, delta, sd or 0.0, level)
    return Difference(route, other, n, delta, low, high, sd, level, mode, blind(n, level))


def _ends(n: int, delta: float, sd: float, level: float) -> Interval:
    centre, half = statistics.centre_and_half(n, delta, sd, level=level)
    return max(-1.0, centre - half), min(1.0, centre + half)


def losses(values: Mapping[str, Column], kinds: Kinds, baseline: str) -> tuple[Difference, ...]:
    """Compare every route with the baseline in every kind of question; kinds without a common score are left
    out.

    The kinds of one route are one family (Bonferroni), so other routes cannot hide a loss.
    """
    found: list[Difference | None] = []
    for route in (route for route in values if route != baseline):
        columns = {mode: paired(values[route], values[baseline], asked) for mode, asked in kinds.items()}
        level = family_level([len(column) for column in columns.values() if column])
        found += [pair(route, baseline, list(one.values()), level, mode) for mode, one in columns.items()]
    return tuple(one for one in found if one is not None)


def from_figures(
    rows: Mapping[str, tuple[int, float, float | None]], route: str, baseline: str
) -> tuple[Difference, ...]:
    """Compare one route by n, mean and standard deviation of the differences in each kind."""
    level = family_level([n for n, _, _ in rows.values()])
    found = (from_summary(route, baseline, *row, level, mode) for mode, row in rows.items())
    return tuple(one for one in found if one is not None)


def family_level(sizes: Sequence[int]) -> float:
    """Return the level of each interval so that all kinds together keep .95; kinds too small to show a loss
    at all are not counted.
    """
    able = sum(not blind(n, 1 - ALPHA) for n in sizes)
    return 1 - ALPHA / max(1, able)


@lru_cache(maxsize=1024)
def blind(n: int, level: float) -> bool:
    """Return whether `n` questions cannot show even a loss of 1 on each of them."""
    return n < 1 or _ends(n, -1.0, 0.0, level)[1] >= 0


def paired(mine: Column, theirs: Column, within: Sequence[str] | None = None) -> dict[str, float]:
    """Return one route minus the other by question, for the questions both have a value for."""
    asked = theirs if within is None else within
    return {q: mine[q] - theirs[q] for q in asked if q in mine and q in theirs}


SAME = 1e-12  # differences below are rounding: the question is a tie
LEAST_DIFFERING = 6  # questions; the spread of fewer differences says nothing about that of others


def family(differences: Mapping[Key, Sequence[float]]) -> dict[Key, dict[str, Any]]:
    """Describe paired differences, route minus baseline for each question, as one family (see
    core.evaluation.statistics.compare).

    For each key: "delta" their mean, "ci95" the interval that the "verdict" rests on, "n", "sd" and Cohen's
    "d_z" (None if nothing varies), "wins", "ties", "losses", "superiority" (wins and half the ties over n),
    "p", "p_holm", and the smallest difference that would be shown with a power of 0.8: "detectable" at alpha
    alone and "detectable_holm" at alpha over the number of comparisons, which is what Holm asks of the
    smallest p (None if it cannot be determined, or fewer than LEAST_DIFFERING questions differ). A key
    without differences is left out.
    """
    known = {key: list(column) for key, column in differences.items() if len(column)}
    bounded = between_bounds(known.values())
    found: dict[Key, dict[str, Any]] = {}
    for key, shown in compare(known).items():
        one = effect(known[key])
        enough = one["wins"] + one["losses"] >= LEAST_DIFFERING
        plain, strict = (
            detectable(one["n"], one["sd"], alpha=alpha, bounded=bounded) if enough else None
            for alpha in (ALPHA, ALPHA / len(known))
        )
        found[key] = one | {
            "ci95": list(shown.interval) if shown.interval else None,
            "p": shown.p,
            "p_holm": shown.p_holm,
            "verdict": shown.verdict,
            "detectable": plain,
            "detectable_holm": strict,
        }
    return found


def effect(differences: Sequence[float]) -> dict[str, Any]:
    """Return the size of an effect from its paired differences, one or more.

    d_z is the mean over the standard deviation of the differences (Cohen 1988, section 2.3.5). The
    probability of superiority counts a tie as half a win (Grissom 1994).
    """
    values = np.asarray(differences, dtype=float)
    count = len(values)
    wins, losses = int((values > SAME).sum()), int((values < -SAME).sum())
    ties = count - wins - losses
    sd = float(values.std(ddof=1)) if count > 1 else None
    sd = 0.0 if sd is not None and sd < SAME else sd
    delta = float(values.mean()) if ties < count else 0.0
    return {
        "delta": delta,
        "n": count,
        "sd": sd,
        "d_z": delta / sd if sd else None,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "superiority": (wins + ties / 2) / count,
    }


def detectable(n: int, sd: float | None, *, alpha: float = ALPHA, bounded: bool = True) -> float | None:
    """Return the smallest true mean difference that `n` questions would show with the power POWER.

    `sd` is the measured standard deviation of the differences; its upper 80% limit counts, so that in four of
    five cases the power is at least that. None if it cannot be determined: without variation, with fewer
    questions than can show any difference, or if a metric between 0 and 1 cannot differ so much.
    """
    if not sd or n < least_to_show(1, alpha):
        return None
    found = statistics.detectable(n, statistics.upper_sd(sd, n), alpha=alpha, bounded=bounded)
    return None if found > 1 and bounded else found


def smallest(
    comparisons: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str
) -> dict[str, Any] | None:
    """Summarise what a set of questions can tell apart in `metric`: over the comparisons, route -> metric ->
    figures of `family`, the median smallest detectable difference, its range, and over how many; None without
    any.
    """
    rows = [by[metric] for by in comparisons.values() if metric in by]
    known = [row for row in rows if row.get("detectable_holm") is not None]
    if not known:
        return None
    plain, strict = ([row[key] for row in known] for key in ("detectable", "detectable_holm"))
    return {
        "comparisons": len(known),
        "questions": max(row["n"] for row in known),
        "power": POWER,
        "median": float(np.median(plain)),
        "median_holm": float(np.median(strict)),
        "least_holm": min(strict),
        "most_holm": max(strict),
    }


Row = Mapping[str, float | None]  # metric -> value for one question, None if it does not apply
ByQuestion = Mapping[str, Row]
ByRoute = Mapping[str, ByQuestion]  # route -> question -> metric -> value
NOBODY: Mapping[str, str] = {}


def compared(
    values: ByRoute,
    baseline: str,
    metrics: Sequence[str],
    of: Sequence[str],
    intervals: Sequence[str],
    same: Mapping[str, str] = NOBODY,
) -> dict[str, dict[str, Any]]:
    """Compute each route's means and, in the metrics `of`, its differences from `baseline` (see `against`).

    `same`: routes that are equal to another (see core.evaluation.comparison.standing_for).
    """
    table = means_of(values, metrics, intervals)
    for route, found in against(values, baseline, of, same).items():
        table[route]["vs_baseline"] = found
    return table


def against(
    values: ByRoute, baseline: str, metrics: Sequence[str], same: Mapping[str, str] = NOBODY
) -> dict[str, dict[str, dict[str, Any]]]:
    """Compare the other routes with `baseline`: route -> metric -> figures of `family`.

    Each metric is a family of its own, because a reader looks at the routes in one metric. A route of `same`
    is not tested again: it takes the figures of the route it is equal to. A metric without a question in
    common is left out.
    """
    others = [route for route in values if route != baseline]
    found = {
        name: distinct_family(
            {route: differences(values, route, baseline, name) for route in others},
            {route: same[route] for route in others if route in same},
        )
        for name in metrics
    }
    return {route: {name: found[name][route] for name in metrics if route in found[name]} for route in others}


def distinct_family(
    columns: Mapping[Key, Sequence[float]], same: Mapping[Key, Key]
) -> dict[Key, dict[str, Any]]:
    """`family` of what is tested once: a key of `same` takes the figures of the key it stands for.
    One that is equal to the baseline itself, which has no key, has no difference to test and is a family
    alone.
    """
    found = family({key: column for key, column in columns.items() if key not in same})
    taken = {key: found[other] for key, other in same.items() if other in found and key in columns}
    alone = {key: columns[key] for key in same if key in columns and same[key] not in columns}
    return found | taken | family(alone)


def means_of(
    values: Mapping[Key, ByQuestion], metrics: Sequence[str], intervals: Sequence[str]
) -> dict[Key, dict[str, Any]]:
    """For each key the mean of each metric over the questions it applies to (None without any), "n"
    questions, and under "ci95" the intervals of those in `intervals`.
    """
    found: dict[Key, dict[str, Any]] = {}
    for key, by in values.items():
        columns = {name: list(column(by, name).values()) for name in metrics}
        ends = {name: statistics.interval(columns[name]) for name in metrics if name in intervals}
        found[key] = {
            **{name: fmean(some) if some else None for name, some in columns.items()},
            "n": len(by),
            "ci95": {name: list(pair) if pair else None for name, pair in ends.items()},
        }
    return found


def counted(values: ByQuestion, metrics: Sequence[str]) -> dict[str, int]:
    """Return the number of questions that the mean of each metric is over."""
    return {name: len(column(values, name)) for name in metrics}


def differences(values: Mapping[Key, ByQuestion], route: Key, baseline: Key, metric: str) -> list[float]:
    """Return `route` minus `baseline` at each question for which both have a value."""
    return list(by_question(values, route, baseline, metric).values())


def by_question(values: Mapping[Key, ByQuestion], route: Key, baseline: Key, metric: str) -> dict[str, float]:
    """Return `differences` by question, in the baseline's order."""
    return paired(column(values.get(route, {}), metric), column(values.get(baseline, {}), metric))


def column(values: ByQuestion, metric: str) -> dict[str, float]:
    """Return the values of one metric by question."""
    return {question: value for question, row in values.items() if (value := row.get(metric)) is not None}


TOP = 10  # passages compared of each ranking


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The difference between routes on one question. `spread`: the best value of a metric minus the worst,
    None if fewer than two routes were scored. `apart`: 1 minus the mean Jaccard index of the first 10
    passages over all pairs of routes that ended well, 0 (the same passages) to 1 (none in common), None with
    fewer than two.
    """

    question: str
    spread: float | None
    apart: float | None


def disagreements(
    values: ByRoute, metric: str, rankings: Mapping[str, Mapping[str, Sequence[str]]]
) -> list[Disagreement]:
    """Every question of `values` or `rankings`, the widest spread first, then the farthest apart.

    `rankings`: question -> route -> passage ids, of the routes that ended well; two empty ones are alike.
    """
    questions = dict.fromkeys([*(q for by in values.values() for q in by), *rankings])
    scores = {route: column(by, metric) for route, by in values.items()}
    found = []
    for question in questions:
        scored = [by[question] for by in scores.values() if question in by]
        pairs = combinations([ids[:TOP] for ids in rankings.get(question, {}).values()], 2)
        likeness = [jaccard(one, other, TOP) if one or other else 1.0 for one, other in pairs]
        spread = max(scored) - min(scored) if len(scored) > 1 else None
        found.append(Disagreement(question, spread, 1 - fmean(likeness) if likeness else None))
    return sorted(found, key=lambda one: (-(one.spread or 0.0), -(one.apart or 0.0)))


LEAST_PREDICTED = 20  # questions
# Kendall's tau of this order with that by nDCG@10 on six judged sets of 100 to 300 questions: the lowest and
# the highest, of twelve routes
TAU = (0.42, 0.8)


def predicted(outcomes: Outcomes, unlabelled: Sequence[str]) -> dict[str, Any]:
    """Predict which route is best on questions without labels: the one whose first TOP passages overlap most
    with those of the others. Return each route's mean Jaccard index, the highest first, and a note; {} unless
    most questions, LEAST_PREDICTED or more, have no label, and there are three routes.

    Source: Aslam and Savell 2003, "On the effectiveness of evaluating retrieval systems in the absence of
    relevance judgments".
    """
    ended = ({route: one for route, one in outcomes[q].items() if one.status == "ok"} for q in unlabelled)
    lists = [{route: [id for id, _ in one.hits[:TOP]] for route, one in by.items()} for by in ended]
    if len(lists) < max(LEAST_PREDICTED, len(outcomes) / 2) or len(lists[0]) < 3:
        return {}
    routes, alike = mean_overlaps(lists, TOP)
    means = zip(routes, ((alike.sum(axis=1) - 1) / (len(routes) - 1)).tolist(), strict=True)
    ordered = sorted(means, key=lambda pair: -pair[1])
    note = (
        f"prediction, no verdict: on {len(lists)} questions without labels {ordered[0][0]} agrees most with "
        f"the other routes (overlap {ordered[0][1]:.3f}); on six judged sets this order had Kendall's "
        f"tau {TAU[0]} to {TAU[1]} with that by nDCG@10"
    )
    return {"questions": len(lists), "agreement": dict(ordered), "kendall_tau": TAU, "note": note}


RULE = "fewer model calls and tokens, then fewer steps, then the lower median time, then the name"


@dataclass(frozen=True, slots=True)
class Equal:
    """`route` and the `others`, which returned the same passages in the same order, and the same answers, on
    all `questions`; `depth` is the length of the longest ranking compared. `route` is the simplest: see RULE.
    """

    route: str
    others: tuple[str, ...]
    questions: int
    depth: int

    @property
    def routes(self) -> tuple[str, ...]:
        """Return all routes of the group."""
        return self.route, *self.others


def equal_routes(outcomes: Outcomes, routes: Sequence[str]) -> tuple[Equal, ...]:
    """Return the routes that are equal on every question: in what they ended with, the whole ranking as saved
    in their run files, the answer and the SQL. Routes that found nothing at all are not called equal.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for route in routes:
        mine = [by[route] for by in outcomes.values() if route in by]
        if any(one.status == "ok" and one.hits for one in mine):
            same = tuple(
                (q, one.status, one.answer, one.abstained, one.citations, one.said.get("sql", ""), ids)
                for q, by in outcomes.items()
                if (one := by.get(route)) is not None
                for ids in [next(zip(*one.hits, strict=True), ())]
            )
            groups.setdefault(same, []).append(route)
    found = []
    for group in (group for group in groups.values() if len(group) > 1):
        first, *others = sorted(group, key=lambda route: _work(outcomes, route))
        lengths = [len(by[first].hits) for by in outcomes.values() if first in by]
        found.append(Equal(first, tuple(others), len(lengths), max(lengths)))
    return tuple(found)


def standing_for(found: Sequence[Equal], baseline: str) -> dict[str, str]:
    """Each route that another stands for in comparisons, and that other: the baseline in its own group, else
    the simplest.
    """
    return {
        route: one
        for group in found
        for one in [baseline if baseline in group.routes else group.route]
        for route in group.routes
        if route != one
    }


def _work(outcomes: Outcomes, route: str) -> tuple[float, float, float, float, str]:
    """By RULE, to be compared. Replies read from a file took no step that is known here."""
    mine = [one for by in outcomes.values() if (one := by.get(route)) is not None and one.status == "ok"]
    times = [one.ms for one in mine if not isnan(one.ms)]
    steps = sum(one.steps for one in mine) / len(mine)
    calls, tokens = sum(one.calls for one in mine), sum(one.tokens for one in mine)
    return calls, tokens, steps or inf, median(times) if times else inf, route
