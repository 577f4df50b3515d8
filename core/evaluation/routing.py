"""The quality of a router's choices: against the kinds that a set's authors wrote, and against the best
route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from core.backends.question_classifier import CLASSES, DEFAULT_ROUTE, QuestionClass
from core.domain.errors import BadInput
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


@dataclass(frozen=True, slots=True)
class Confusion:
    """`counts[row][column]`: questions of class `labels[row]` that were taken for `labels[column]`.

    `left_out`: questions whose mode stands for no class, or for which no class was chosen.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    left_out: int

    @property
    def asked(self) -> int:
        """The questions counted."""
        return sum(map(sum, self.counts))

    @property
    def accuracy(self) -> float | None:
        """The share of questions taken for what they are; None without any."""
        right = sum(row[at] for at, row in enumerate(self.counts))
        return right / self.asked if self.asked else None

    def recall(self) -> dict[str, float | None]:
        """Return the share of each class's questions that were recognised, or None for a class without
        questions.
        """
        return {
            label: row[at] / sum(row) if sum(row) else None
            for at, (label, row) in enumerate(zip(self.labels, self.counts, strict=True))
        }


@dataclass(frozen=True, slots=True)
class Regret:
    """The regret of a router: the best route's value of a metric minus the router's, per question. `mean`
    with its 95% interval (None without a question). `best` counts for each route the questions on which it
    was best; ties count for each of the routes.
    """

    by_question: Mapping[str, float]
    mean: float
    interval: tuple[float, float] | None
    best: Mapping[str, int]


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


def mistakes(
    values: Values, router: str, given: Mapping[str, str], default: str = DEFAULT_ROUTE
) -> list[Mistake]:
    """Return the questions the router got wrong, sorted by loss against the default route, then against the
    best.
    """
    found = []
    for question, routes in values.items():
        best = max(routes, key=lambda name: routes[name], default="")
        if question in given and router in routes and routes[best] > routes[router]:
            own = routes[router]
            lost = routes[default] - own if default in routes else None
            found.append(Mistake(question, given[question], own, best, lost, routes[best] - own))
    return sorted(found, key=lambda one: (-max(0.0, one.lost or 0.0), -one.regret, one.question))


def confusion(chosen: Mapping[str, str], modes: Mapping[str, str | None]) -> Confusion:
    """Return the confusion of the classes `chosen`, by question id, with those of the questions' `modes`.

    BadInput for a chosen class that there is not.
    """
    counts: Counter[tuple[str, str]] = Counter()
    left_out = 0
    for question, mode in modes.items():
        truth, taken = CLASS_OF.get(mode or ""), chosen.get(question)
        if truth is None or taken is None:
            left_out += 1
        elif taken not in CLASSES:
            raise BadInput(f"{question}: {taken!r} is no class; there are: {', '.join(CLASSES)}")
        else:
            counts[truth, taken] += 1
    rows = tuple(tuple(counts[truth, taken] for taken in CLASSES) for truth in CLASSES)
    return Confusion(CLASSES, rows, left_out)


def regret(values: Mapping[str, Mapping[str, float]], router: str) -> Regret:
    """Return the regret of `router` from a metric's `values`, question id -> route -> value. The router is
    one of the routes to choose from, so no regret is below 0. A question without a value of the router is
    left out. Raises BadInput if it has no value at all.
    """
    known = {question: routes for question, routes in values.items() if router in routes}
    if not known:
        raise BadInput(f"route {router!r} has no value on any of {len(values)} questions")
    lost = {question: max(routes.values()) - routes[router] for question, routes in known.items()}
    best = dict.fromkeys((name for routes in known.values() for name in routes), 0)
    for routes in known.values():
        for name, value in routes.items():
            best[name] += value == max(routes.values())
    return Regret(lost, sum(lost.values()) / len(lost), mean_interval(list(lost.values())), best)


def block(
    chosen: Mapping[str, str], modes: Mapping[str, str | None], values: Values, router: str, metric: str
) -> dict[str, Any]:
    """Summarise an evaluation of a router: its confusion, and its regret in `metric` against the routes run.

    `values`: question id -> route -> value of the questions with labels; without any there is no regret.
    """
    found = confusion(chosen, modes)
    told: dict[str, Any] = {
        "classes": found.labels,
        "confusion": found.counts,
        "accuracy": found.accuracy,
        "asked": found.asked,
        "left_out": found.left_out,
    }
    own = {question: routes[router] for question, routes in values.items() if router in routes}
    if own:
        lost = regret(values, router)
        told["regret"] = {
            "metric": metric,
            "mean": lost.mean,
            "ci95": lost.interval,
            "n": len(lost.by_question),
            "best": lost.best,
        }
        others = {
            q: {name: routes[name] for name in routes if name != router} for q, routes in values.items()
        }
        if (against := standing(others, own)) is not None:
            told["standing"] = against
    plain: dict[str, Any] = to_jsonable_python(told)
    return plain


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
