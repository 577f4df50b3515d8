"""The one rule for which measured route to ship, and what its verdict rests on.

A route may ship if it is at most the margin worse than every other route: the lower end of its paired
interval against each lies above minus the margin. That is an intersection-union test, whose level holds for
any number of routes (Berger 1982, Technometrics 24). Of the routes that pass it the cheapest ships. Failing
to show that a route is worse never counts as showing that it is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
from pydantic_core import to_jsonable_python

from core.analysis.token_usage import Prices
from core.domain.format import number
from core.evaluation import statistics
from core.evaluation.comparison import Column, Difference, Kinds, losses, pair, paired
from core.evaluation.costs import Cost, cheapest_first, spent
from core.evaluation.finding import MARGIN, count, listed
from core.evaluation.outcome import Outcomes
from core.evaluation.statistics import ALPHA, FEASIBLE, least_for_equivalence, needed
from core.evaluation.templating import say, sentences

MIN_QUESTIONS = 25  # scored questions needed to ship any route
TRIED = 3  # cheap routes tried besides the best: each further one adds to the chance of a wrong release

Kind = Literal["ship", "equivalent", "undecided", "none"]
State = Literal["passes", "fails", "open"]
PairOf = Callable[[str, str], Difference | None]
Named = Callable[[str], str]  # the title of a route


@dataclass(frozen=True, slots=True)
class Option:
    """A route as the rule sees it."""

    route: str
    # mean of the metric; None if no question was scored
    mean: float | None
    # number of scored questions
    scored: int
    # against the limits; "open": it is known to miss none, but some cannot be determined
    state: State
    cost: Cost


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the verdict is what it is: an id for programs and a sentence for people."""

    id: str
    text: str
    route: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """The route with the highest mean among those that may ship."""

    route: str
    mean: float
    # how much worse it may be than any other route; None if that cannot be determined
    shown_margin: float | None
    # the route that may be that much better; None without another route
    rival: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision which route to ship, or the reason it is not decided."""

    decision: Kind
    # the route to ship; None unless the decision is "ship" or "equivalent"
    chosen: str | None
    # the routes that may all be shipped, the cheapest first; () unless the decision is "equivalent"
    equivalent: tuple[str, ...]
    best_so_far: BestSoFar | None
    # the loss of the metric that is accepted for a cheaper route
    margin: float
    # scored questions needed to ship any route
    min_questions: int
    # scored questions needed to call routes equivalent
    min_equivalent: int
    # scored questions that the verdict rests on
    questions: int
    # the chosen route, or the best so far, against every other route, the closest rival first
    pairs: tuple[Difference, ...]
    reasons: tuple[Reason, ...]
    # routes shown to be worse than the best so far (sign-flip max-t over all pairs); () if that is not known
    behind: tuple[str, ...]
    # routes that miss a limit or have no score, so that they are no candidates
    excluded: tuple[str, ...]
    # about how many more questions would decide; None if nothing is open or that cannot be determined
    more_questions: int | None = None

    @property
    def open_pair(self) -> tuple[str, str] | None:
        """The two routes whose labels would decide most; None if nothing is open between routes."""
        best = self.best_so_far
        if self.decision != "undecided" or best is None or best.rival is None:
            return None
        return best.route, best.rival

    def document(self) -> dict[str, Any]:
        """Return the verdict as JSON values, equal to what reading them back gives."""
        found: dict[str, Any] = to_jsonable_python(self)
        return found


@dataclass(frozen=True, slots=True)
class _Standing:
    """A route against every other that may ship."""

    option: Option
    pairs: tuple[Difference, ...]
    # whether it could be compared with every other
    complete: bool

    @property
    def questions(self) -> int:
        """The scored questions that a claim about it rests on."""
        return min([self.option.scored, *(one.n for one in self.pairs)])

    @property
    def low(self) -> float:
        """The lowest end of its intervals: minus how much worse it may be."""
        return min((one.low for one in self.pairs), default=0.0)

    def within(self, margin: float) -> bool:
        """Return whether it is shown to be at most `margin` worse than every other."""
        return self.complete and self.low > -margin

    def best_so_far(self) -> BestSoFar:
        """Return it as the best route so far."""
        shown = max(0.0, -self.low) if self.complete else None
        rival = self.pairs[0].other if self.pairs else None
        return BestSoFar(self.option.route, self.option.mean or 0.0, shown, rival)


def decide(
    options: Sequence[Option],
    pair: PairOf,
    *,
    margin: float = MARGIN,
    min_questions: int | None = None,
    cheaper: bool = True,
    behind: Mapping[str, Sequence[str]] | None = None,
    named: Callable[[str], str] = str,
) -> Verdict:
    """Decide which of `options` to ship.

    `pair(route, other)` compares two routes; None if that is not known. With `cheaper` the cheapest route
    that is good enough ships, otherwise only the one with the highest mean may. `behind` names the routes
    shown to be worse than each route. `named` returns a route's title.
    """
    least = MIN_QUESTIONS if min_questions is None else min_questions
    equivalent = least_for_equivalence(margin) if min_questions is None else min_questions
    may_ship = [one for one in options if one.state != "fails" and one.mean is not None]
    passing = cheapest_first({one.route: one.cost for one in may_ship if one.state == "passes"})
    standing = {}
    for one in may_ship:
        pairs = [pair(one.route, other.route) for other in may_ship if other is not one]
        known = tuple(sorted((each for each in pairs if each is not None), key=lambda each: each.low))
        standing[one.route] = _Standing(one, known, len(known) == len(pairs))

    def verdict(
        decision: Kind, routes: Sequence[str], reasons: Sequence[Reason], more: int | None
    ) -> Verdict:
        chosen = routes[0] if routes and decision in ("ship", "equivalent") else None
        shown = standing.get(chosen or best or "")
        return Verdict(
            decision,
            chosen,
            tuple(routes) if decision == "equivalent" else (),
            standing[best].best_so_far() if best else None,
            margin,
            least,
            equivalent,
            shown.questions if shown else 0,
            shown.pairs if shown else (),
            tuple(reasons),
            tuple((behind or {}).get(best or "", ())),
            tuple(one.route for one in options if one.route not in standing),
            more,
        )

    best = max(
        passing or standing, key=lambda route: round(standing[route].option.mean or 0.0, 12), default=None
    )
    if best is None:
        failed = all(one.state == "fails" for one in options)
        reasons = [
            Reason("misses-limit", f"{named(one.route)} misses a limit.", one.route) for one in options
        ]
        if not any(one.mean is not None for one in options):
            reasons = [Reason("no-scored-question", "No question was scored: label some.")]
        return verdict("none" if failed else "undecided", (), reasons, None)
    able = [route for route in passing if all(one.delta > -margin for one in standing[route].pairs)]
    cheap = [*able[:TRIED], best] if cheaper else [best]
    # The candidates, the cheapest first: the best, and cheap ones that could be good enough.
    tried = [route for route in passing if best in passing and route in cheap]
    good = [route for route in tried if standing[route].within(margin)]
    enough = [route for route in good if standing[route].questions >= least]
    if len(enough) == 1:
        return verdict("ship", enough, [_ships(standing[enough[0]], named)], None)
    if enough and min(standing[route].questions for route in enough) >= equivalent:
        text = (
            f"{listed([*map(named, enough)])} are each at most {number(margin)} worse than any other route; "
            f"{named(enough[0])} is the cheapest."
        )
        return verdict("equivalent", enough, [Reason("equivalent", text, enough[0])], None)
    reasons, top = [], standing[best]  # why nothing is decided, the most general first
    if top.questions < least:
        text = f"{count(top.questions, 'scored questions')}; shipping a route takes {least}."
        reasons.append(Reason("few-questions", text))
    if not passing:
        text = "No route is known to meet every limit: some cannot be determined."
        reasons.append(Reason("open-limits", text))
    if not top.complete:
        text = "The routes cannot be compared with each other: the values of each question are missing."
        reasons.append(Reason("no-question-values", text, best))
    elif top.low <= -margin:
        other = top.pairs[0]
        text = f"{named(best)} may be up to {number(-other.low)} worse than {named(other.other)}."
        reasons.append(Reason("may-be-worse", text, best, other.other))
    if len(enough) > 1:
        text = f"Calling routes equivalent within {number(margin)} takes {equivalent} scored questions."
        reasons.append(Reason("few-for-equivalence", text))
    return verdict("undecided", (), reasons, _more(top, margin, least, equivalent) if passing else None)


def _more(best: _Standing, margin: float, least: int, equivalent: int) -> int | None:
    """Return about how many more questions would show that the best route is at most the margin worse.

    Half of what the interval leaves open is taken off the measured lead: a leader is chosen by that lead, so
    the lead itself is no estimate.
    """
    if not best.complete or best.questions < 2:
        return None
    open_ = [one for one in best.pairs if one.low <= -margin]
    totals = [needed(max(0.0, (one.low + one.delta) / 2), one.sd or 0.0, above=-margin) for one in open_]
    if None in totals:
        return None
    total = max([least, equivalent if best.pairs else 0, *(total for total in totals if total is not None)])
    more = total - best.questions
    return more if 0 < more <= FEASIBLE else None


def _ships(one: _Standing, named: Callable[[str], str]) -> Reason:
    route = one.option.route
    if not one.pairs:
        return Reason("only-route", f"{named(route)} is the only route that may ship.", route)
    if one.low > 0:
        text = f"{named(route)} is shown to be better than every other route that may ship."
        return Reason("better-than-all", text, route)
    text = f"{named(route)} is at most {number(max(0.0, -one.low))} worse than any other route that may ship."
    return Reason("within-margin", text, route, one.pairs[0].other)


def headline(found: Verdict, named: Named, metric: str, of: str = "") -> str:
    """Return what to ship, or what is known if that is not decided, in one sentence.

    `metric` is the metric's title, and `of` the set and corpus.
    """
    return say("verdict.headline", found, named, metric, of)


def leader(found: Verdict, named: Named, metric: str) -> str:
    """Return a sentence naming the leader and the number of routes not shown to differ from it."""
    return say("verdict.leader", found, named, metric)


def details(found: Verdict, named: Named) -> list[str]:
    """Return the sentences after the headline: the reasons, the closest comparison and who is shown worse."""
    return sentences("verdict.details", found, named)


def compared(pair: Difference, named: Named) -> str:
    """Return one comparison with the interval that the verdict rests on."""
    return say("verdict.compared", pair, named)


Values = Mapping[str, Column]  # route -> question -> value


def by_values(
    options: Sequence[Option],
    values: Values,
    corrected: Mapping[tuple[str, str], Difference] | None = None,
    **rules: Any,
) -> Verdict:
    """Decide which of `options` to ship by their values at each question, and by the `rules` of `decide`.
    Pairs of routes in `corrected` are compared by that instead.
    """
    known: dict[tuple[str, str], Difference | None] = dict(corrected or {})

    def compared(route: str, other: str) -> Difference | None:
        if (route, other) not in known:
            known[route, other] = pair(route, other, list(paired(values[route], values[other]).values()))
        return known[route, other]

    behind = _behind(values, [one.route for one in options], compared)
    return decide(options, compared, behind=behind, **rules)


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
    lost = {one.route for one in losses(values, kinds, baseline) if one.high < 0}
    paid: dict[str, float | None] = {}
    failed = set(lost)
    for route in values:
        mine = [by[route] for by in outcomes.values() if route in by]
        calls, prompts = sum(one.calls for one in mine), sum(one.prompt_tokens for one in mine)
        written, ended = sum(one.completion_tokens for one in mine), sum(one.status == "ok" for one in mine)
        paid[route] = spent(calls, prompts, written, ended, prices.get(route, (None, None)))[2]
        failed |= {route} if ended < len(mine) else set()
    if None in paid.values():  # a price and a number of tokens cannot be compared
        paid = {}
    options = []
    for route, column in values.items():
        cost = measured_cost(outcomes, route, paid.get(route))
        mean = fmean(column.values()) if column else None
        options.append(Option(route, mean, len(column), "fails" if route in failed else "passes", cost))
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
