"""Pairs what came of a question as it was decided with what came of it the other way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.analysis.metrics import ANSWERS
from core.evaluation import scoring
from core.evaluation.audit.turning import BothWays, Turned
from core.evaluation.comparison import ByRoute, Row
from core.evaluation.dataset import LabelledSet
from core.evaluation.outcome import Asked, Outcome, Outcomes
from core.evaluation.scoring import route_values

RANKINGS = ("ndcg@10", "recall@10")
FIGURES = (*RANKINGS, "supported_accuracy", "correct")  # that a decision is judged by
OTHER = "decided otherwise when asked again"
MISSED = "did not come to the decision when asked again"
FAILED = "failed when asked again"
Measure = Callable[[Outcomes, Sequence[str]], ByRoute]


@dataclass(frozen=True, slots=True)
class Case:
    """One decision on one question, with the results of both ways."""

    question: str
    route: str
    step: str
    decision: str
    turned_to: str
    acted: bool  # whether the route fired by itself
    fired: Row  # with the decision that intervenes
    quiet: Row  # with the other decision
    # the price, fired minus quiet: model calls, tokens and seconds
    calls: int
    tokens: int
    seconds: float | None  # None if a call that only one way made came from the cache
    runs: tuple[str, str]  # of what the route did by itself, and of the other way
    # the reason the case is not counted, or ""
    left_out: str = ""

    def gain(self, metric: str) -> float | None:
        """Compute fired minus quiet, or None if either has no value, or the case is left out."""
        one, other = self.fired.get(metric), self.quiet.get(metric)
        return None if self.left_out or one is None or other is None else one - other


def measuring(
    labelled: LabelledSet,
    executed: Callable[[Outcomes, Sequence[str]], ByRoute] = lambda _outcomes, _names: {},
) -> Measure:
    """Return the measures of the outcomes of routes: their rankings where the question is labelled, their
    answers if they gave one, and what `executed` says of database queries.
    """

    def measure(outcomes: Outcomes, names: Sequence[str]) -> ByRoute:
        written, queried = scoring.measured(labelled, outcomes, names), executed(outcomes, names)
        found: dict[str, dict[str, Row]] = {}
        for name in names:
            ranked = route_values(labelled, outcomes, name, metrics=RANKINGS)
            parts: tuple[Mapping[str, Row], ...] = (ranked, written[name], queried.get(name, {}))
            ids = dict.fromkeys(id for part in parts for id in part)
            found[name] = {id: {k: v for part in parts for k, v in part.get(id, {}).items()} for id in ids}
        return found

    return measure


def cases(outcomes: Outcomes, turned: Mapping[str, BothWays], measure: Measure) -> list[Case]:
    """Return every decision that was turned, with the figures of both ways."""
    acted = measure(outcomes, list(dict.fromkeys(route for by in outcomes.values() for route in by)))
    other: dict[str, dict[str, Outcome]] = {}
    for question, both in turned.items():
        # A stand-in for a route's name, under which its turned outcomes are measured.
        other[question] = {f"{one.route}\n{one.step}": one.outcome for one in both.turned}
    forced = measure(other, list(dict.fromkeys(name for by in other.values() for name in by)))
    found = []
    for question, both in turned.items():
        for one in both.turned:
            itself = outcomes.get(question, {}).get(one.route)
            if itself is not None and itself.run == both.run:  # else it was asked again since
                mine = acted[one.route].get(question, {})
                others = forced[f"{one.route}\n{one.step}"].get(question, {})
                found.append(_case(question, one, itself, mine, others))
    return found


def _case(question: str, one: Turned, itself: Outcome, mine: Row, others: Row) -> Case:
    fired, quiet = (itself, one.outcome) if one.fired else (one.outcome, itself)
    first, second = (mine, others) if one.fired else (others, mine)
    left_out = FAILED
    if one.outcome.status == "ok":
        again = next((taken for taken in one.outcome.decided if taken.step == one.step), None)
        left_out = MISSED
        if again is not None and again.forced:
            left_out = "" if again.forced == one.was else OTHER
    return Case(
        question,
        one.route,
        one.step,
        one.was,
        one.decision,
        one.fired,
        first,
        second,
        fired.calls - quiet.calls,
        fired.tokens - quiet.tokens,
        (fired.ms - quiet.ms) / 1000 if timed(fired.asked, quiet.asked, itself.began) else None,
        (itself.run, one.outcome.run),
        left_out,
    )


def timed(one: Sequence[Asked], other: Sequence[Asked], since: str) -> bool:
    """Return whether the calls that only one of two runs made were made `since` a time (ISO 8601). Calls of
    both take the same time in both, which cancels.
    """
    counts = Counter(call.key for call in one), Counter(call.key for call in other)
    differing = (counts[0] - counts[1]) | (counts[1] - counts[0])
    return all(live(call, since) for call in (*one, *other) if call.key in differing)


def live(call: Asked, since: str) -> bool:
    """Return whether a call was made `since` a time, and not read from an earlier day's cache or a
    recording.
    """
    return not call.made or call.made[:19] >= since[:19]


def known(values: ByRoute) -> list[str]:
    """Return the figures that some question has, in their usual order."""
    rows = (row for by in values.values() for row in by.values())
    there = {name for row in rows for name, value in row.items() if value is not None}
    usual = dict.fromkeys((*FIGURES, *ANSWERS))
    return [name for name in (*usual, *sorted(there - usual.keys())) if name in there]
