"""The best route of each question: what choosing it would gain, and how near a router comes to that. A
router's choices are also compared with the kinds of question that a set's authors wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from core.backends.question_classifier import CLASSES, DEFAULT_ROUTE, QuestionClass
from core.domain.errors import BadInput
from core.evaluation.comparison import ByRoute, column
from core.evaluation.statistics import Interval, difference_interval, largest_interval, mean_interval

Values = Mapping[str, Mapping[str, float]]  # question id -> route -> value of a metric
CLASS_OF: Mapping[str, QuestionClass] = {  # by the mode of a question
    "no_retrieval": "no_retrieval",
    "exact_identifier": "exact",
    "plain": "plain",
    "vocabulary_mismatch": "conceptual",
    "abstract": "conceptual",
    "multi_hop": "complex",
    "comparison": "complex",
    "ambiguous_followup": "conversational",
    "structured": "structured",
}  # no_answer and outside_knowledge are about what the corpus lacks, not how to search it


def oracle(values: ByRoute, metric: str) -> dict[str, Any] | None:
    """Return the figures of the oracle of all routes in `values`, or None without any value. It chooses with
    the labels in hand: no router reaches it, and chance alone raises it.

    "mean" of each question's best value, with "ci95" and "n". "regret" by route, the least first: the best
    value minus the route's over the "n" questions it was scored on; on "best" of them no route was better,
    ties counted for each. "pairs", the largest gain first: the "mean" of the better value of two routes over
    the "n" questions both were scored on, and "gain", that minus the mean of the "better" route, whose "ci95"
    allows for its being chosen on the same questions (see core.evaluation.statistics.largest_interval).
    """
    known = {route: by for route, rows in values.items() if (by := column(rows, metric))}
    if not known:
        return None
    tops: dict[str, float] = {}
    for by in known.values():
        for question, value in by.items():
            tops[question] = max(value, tops.get(question, value))
    regret = []
    for route, by in known.items():
        lost = [tops[question] - value for question, value in by.items()]
        regret.append({"route": route, **_mean(lost), "best": lost.count(0.0)})
    pairs = []
    for routes in combinations(known, 2):
        if both := [question for question in known[routes[0]] if question in known[routes[1]]]:
            scores = np.array([[known[route][question] for question in both] for route in routes])
            better = scores.max(axis=0)
            # The gain is the smaller of what the two routes lose to the better value of each question.
            low, high = largest_interval(scores - better, -1.0, 0.0)
            first, second = scores.mean(axis=1)
            pairs.append(
                {
                    "routes": list(routes),
                    "mean": float(better.mean()),
                    "better": routes[int(first < second)],
                    "gain": max(0.0, float(better.mean() - max(first, second))),
                    "ci95": [-high, -low],
                    "n": len(both),
                }
            )
    return {
        "metric": metric,
        **_mean(list(tops.values())),
        "pairs": sorted(pairs, key=lambda pair: -pair["gain"]),
        "regret": {one["route"]: one for one in sorted(regret, key=lambda one: one["mean"])},
    }


def _mean(values: list[float]) -> dict[str, Any]:
    return {"mean": fmean(values), "ci95": list(mean_interval(values) or ()), "n": len(values)}


@dataclass(frozen=True, slots=True)
class Shown:
    """A mean over `n` questions with its 95% interval, None without a question."""

    mean: float
    ci95: Interval | None
    n: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A router against what it chose from, over the `n` questions that every route has a value of: the means
    of the router, the default route, the `best` single route (by these values) and the best route of each
    question (the oracle).

    `gain` over the default route; `regret` against the best single route, below 0 if the router beats all
    (its interval allows for the choice on the same questions); `oracle_regret`.
    """

    n: int
    router: float
    default: float
    best: str
    single: float
    oracle: float
    gain: Shown
    regret: Shown
    oracle_regret: Shown


@dataclass(frozen=True, slots=True)
class Mistake:
    """A question that the router gave to `route` though another was better: by `lost` than the default route
    (negative where it gained on that), by `regret` than the `best` of those measured.
    """

    question: str
    route: str
    value: float
    best: str
    lost: float | None
    regret: float


def standing(values: Values, router: Mapping[str, float], default: str = DEFAULT_ROUTE) -> Standing | None:
    """Return the standing of a router whose value of each question is `router`, or None if fewer than two
    questions have values of the router, the default route and another route. Routes that lack a value of such
    a question are left out.
    """
    known = [question for question, routes in values.items() if question in router and default in routes]
    names = sorted({name for question in known for name in values[question]})
    names = [name for name in names if all(name in values[question] for question in known)]
    if len(known) < 2:
        return None
    table = np.array([[values[question][name] for question in known] for name in names])
    own = np.array([router[question] for question in known])
    usual = table[names.index(default)]
    oracle = np.maximum(np.array([max(values[question].values()) for question in known]), own)
    means, best = table.mean(axis=1), int(table.mean(axis=1).argmax())
    gain, short = (
        Shown(float(apart.mean()), difference_interval(list(apart)), len(apart))
        for apart in (own - usual, oracle - own)
    )
    ends = largest_interval(table - own, -1.0, 1.0)
    regret = Shown(float(means[best] - own.mean()), ends, len(known))
    levels = (float(usual.mean()), names[best], float(means[best]), float(oracle.mean()))
    return Standing(len(known), float(own.mean()), *levels, gain, regret, short)


def mistakes(values: Values, router: str, given: Mapping[str, str]) -> list[Mistake]:
    """Return the questions the router got wrong, sorted by loss against the default route, then against the
    best.
    """
    found = []
    for question, routes in values.items():
        best = max(routes, key=lambda name: routes[name], default="")
        if question in given and router in routes and routes[best] > routes[router]:
            own = routes[router]
            lost = routes[DEFAULT_ROUTE] - own if DEFAULT_ROUTE in routes else None
            found.append(Mistake(question, given[question], own, best, lost, routes[best] - own))
    return sorted(found, key=lambda one: (-max(0.0, one.lost or 0.0), -one.regret, one.question))


def routing(
    chosen: Mapping[str, str], modes: Mapping[str, str | None], values: Values, router: str, metric: str
) -> dict[str, Any]:
    """Return the figures of a router: its "confusion", a row for each of the "classes" that questions are of
    by their `modes`, a column for each that was `chosen`; and its "regret" in `metric` against the routes
    run, itself among them, with how often each was the "best", ties counted for each.

    "left_out" questions have a mode that stands for no class, or no class was chosen for them. `values` are
    of the questions with labels; without any there is no regret. Raises BadInput for an unknown class.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for question, mode in modes.items():
        truth, taken = CLASS_OF.get(mode or ""), chosen.get(question)
        if truth is not None and taken is not None:
            if taken not in CLASSES:
                raise BadInput(f"{question}: {taken!r} is no class; there are: {', '.join(CLASSES)}")
            counts[truth, taken] += 1
    asked, right = counts.total(), sum(counts[one, one] for one in CLASSES)
    found: dict[str, Any] = {
        "classes": list(CLASSES),
        "confusion": [[counts[truth, taken] for taken in CLASSES] for truth in CLASSES],
        "accuracy": right / asked if asked else None,
        "asked": asked,
        "left_out": len(modes) - asked,
    }
    known = {question: routes for question, routes in values.items() if router in routes}
    if known:
        lost = [max(routes.values()) - routes[router] for routes in known.values()]
        tops = (name for routes in known.values() for name in routes if routes[name] == max(routes.values()))
        every = dict.fromkeys((name for routes in known.values() for name in routes), 0)
        found["regret"] = {"metric": metric, **_mean(lost), "best": {**every, **Counter(tops)}}
        others = {q: {name: one for name, one in by.items() if name != router} for q, by in values.items()}
        if at := standing(others, {question: routes[router] for question, routes in known.items()}):
            found["standing"] = to_jsonable_python(at)
    return found


def seen_in_training(name: str, made: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a classifier's figures on the set `name` while it was held out, from its training record, or
    None if it was not trained on that set, so that its figures are of unseen questions.
    """
    if name not in made.get("sets", {}):
        return None
    rows = [row for row in made.get("regret held out", ()) if row["set"] == name]
    kinds = [row for row in made.get("held out", ()) if row["set"] == name]
    asked = sum(row["n"] for row in kinds)
    return {
        "right": sum(row["right"] * row["n"] for row in kinds) / asked if asked else None,
        "asked": asked,
        "standing": rows[0]["standing"] if rows else None,
    }
