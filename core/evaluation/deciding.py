"""The verdict on measured routes, from each question's values and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from statistics import fmean, median
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from core.analysis.token_usage import Prices
from core.evaluation import statistics
from core.evaluation.costs import Cost, spent
from core.evaluation.finding import MARGIN
from core.evaluation.outcome import Outcomes
from core.evaluation.pairs import Column, Difference, Kinds, losses, pair, paired
from core.evaluation.statistics import ALPHA
from core.evaluation.stored import checked
from core.evaluation.verdict import Option, Verdict, decide

Values = Mapping[str, Column]  # route -> question -> value


def by_values(
    options: Sequence[Option],
    values: Values,
    *,
    margin: float = MARGIN,
    min_questions: int | None = None,
    cheaper: bool = True,
    named: Callable[[str], str] = str,
) -> Verdict:
    """Decide which of `options` to ship by their values at each question (see
    core.evaluation.verdict.decide).
    """
    known: dict[tuple[str, str], Difference | None] = {}

    def compared(route: str, other: str) -> Difference | None:
        if (route, other) not in known:
            known[route, other] = pair(route, other, list(paired(values[route], values[other]).values()))
        return known[route, other]

    return decide(
        options,
        compared,
        margin=margin,
        min_questions=min_questions,
        cheaper=cheaper,
        behind=_behind(values, [one.route for one in options], compared),
        named=named,
    )


def plain(
    values: Values,
    outcomes: Outcomes,
    baseline: str,
    kinds: Kinds,
    prices: Mapping[str, Prices],
    named: Callable[[str], str] = str,
) -> Verdict:
    """Decide without limits on time or cost: a route may ship if it failed on no question and is not shown to
    be worse than the baseline on a kind of question. Costs are by `prices` if all routes have theirs.
    """
    # A price and a number of tokens cannot be compared: prices count if all routes have theirs.
    paid: dict[str, float] | None = {}
    for route in values:
        mine = [by[route] for by in outcomes.values() if route in by]
        cost = spent(
            sum(one.calls for one in mine),
            sum(one.prompt_tokens for one in mine),
            sum(one.completion_tokens for one in mine),
            sum(one.status == "ok" for one in mine),
            prices.get(route, (None, None)),
        )[2]
        paid = None if paid is None or cost is None else {**paid, route: cost}
    lost = {one.route for one in losses(values, kinds, baseline) if one.high < 0}
    options = []
    for route, column in values.items():
        mine = [by[route] for by in outcomes.values() if route in by]
        fails = route in lost or any(one.status != "ok" for one in mine)
        mean = fmean(column.values()) if column else None
        measured = measured_cost(outcomes, route, (paid or {}).get(route))
        options.append(Option(route, mean, len(column), "fails" if fails else "passes", measured))
    return by_values(options, values, named=named)


def measured_cost(outcomes: Outcomes, route: str, spent: float | None = None) -> Cost:
    """Return what a question costs by one route. `spent` is its price if that is known, else tokens
    count.
    """
    by_question = {question: by[route] for question, by in outcomes.items() if route in by}
    ended = {question: one for question, one in by_question.items() if one.status == "ok"}
    if not ended:
        return Cost(None, None, None)
    times = {question: one.ms for question, one in ended.items() if not isnan(one.ms)}
    calls, tokens, steps = (
        fmean(getattr(one, name) for one in ended.values()) for name in ("calls", "tokens", "steps")
    )
    if calls and not tokens:  # nobody reported the tokens of its calls
        spent = None
    elif spent is None:
        spent = tokens
    return Cost(spent, calls, median(times.values()) if times else None, steps or None, times)


def read(document: Mapping[str, Any]) -> Verdict:
    """Read a verdict as the figures of an evaluation hold it. Raises ValueError if it is damaged."""
    return checked(TypeAdapter(Verdict), document)


def _behind(
    values: Values, routes: Sequence[str], compared: Callable[[str, str], Difference | None]
) -> dict[str, list[str]]:
    """Return for each route the routes shown to be worse than it.

    A route is shown to be worse if the max-t test over all pairs says that the two differ, and the interval
    of their difference that it is worse.
    """
    questions = list(dict.fromkeys(question for route in routes for question in values[route]))
    table = np.array([[values[route].get(q, np.nan) for q in questions] for route in routes]).reshape(
        len(routes), -1
    )
    p = statistics.worse_than(table)
    return {
        route: [
            other
            for row, other in enumerate(routes)
            if p[row, column] < ALPHA and (one := compared(other, route)) is not None and one.high < 0
        ]
        for column, route in enumerate(routes)
    }
