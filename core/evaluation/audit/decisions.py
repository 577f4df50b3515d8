"""Pairs the results of a question as it was decided with those of the other way; the value of each kind of
decision: precision, recall, gain when fired, price; and audited routes against the baselines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from core.analysis.metrics import ANSWERS
from core.domain.needs import Family
from core.evaluation import comparison, scoring
from core.evaluation.audit.turning import BothWays, Turned, first_of, other_way
from core.evaluation.comparison import SAME, ByRoute, Row, counted, differences, means_of
from core.evaluation.dataset import LabelledSet
from core.evaluation.outcome import Asked, Outcome, Outcomes
from core.evaluation.scoring import route_values
from core.routes.registry import routes as every

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


Kind = tuple[str, str]  # route, step


def unpaired(outcomes: Outcomes, turned: Mapping[str, Collection[str]]) -> list[dict[str, Any]]:
    """Return how often the deciding steps of each route (`turned`) first made a decision that no pair names,
    so that it was not turned: a row for each route and step.
    """
    found: dict[Kind, Counter[str]] = {}
    for by in outcomes.values():
        for route, steps in turned.items():
            for taken in first_of(by[route], steps):
                if other_way(taken.step, taken.decision) is None:
                    found.setdefault((route, taken.step), Counter())[taken.decision] += 1
    return [
        {"route": route, "step": step, "decisions": dict(counts.most_common())}
        for (route, step), counts in found.items()
    ]


def table(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return a row for each route and deciding step, in the order they come.

    "n" decisions were turned, of which "fired" had fired; "left_out" counts by reason those that could not be
    compared, which count nowhere else. For each figure under "figures":

    - "fired": of the decisions that fired, those with a value both ways, of which firing was "better", "tied"
      and "worse". "precision" is better / fired: ties are no success.
    - "quiet": the same of those that did not fire, whose other way was to fire; "missed" of them would have
      been better fired. "recall" is better / (better + missed).
    - "gain": fired minus quiet where it fired, as core.evaluation.comparison.family: one Holm family over the
      kinds. "gain_had_it_fired": its mean where it did not fire, with an interval.
    - "touched": whether any question's value differs between the two ways.

    "price" is the mean of fired minus quiet where it fired: "calls", "tokens", and "seconds" over the "timed"
    decisions (None: not measured, as all that differed came from the cache).
    """
    kinds: dict[Kind, list[Case]] = {}
    for case in cases:
        kinds.setdefault((case.route, case.step), []).append(case)
    more = {name for case in cases for name in case.fired} - {*FIGURES, *ANSWERS}
    names = [*FIGURES, *sorted(more)]
    tested = {
        name: comparison.family({kind: gains(some, name, acted=True) for kind, some in kinds.items()})
        for name in names
    }
    return [
        {
            "route": kind[0],
            "step": kind[1],
            "n": len(some),
            "fired": sum(case.acted for case in some),
            "decisions": dict(Counter(case.decision for case in some).most_common()),
            "left_out": dict(Counter(case.left_out for case in some if case.left_out)),
            "figures": {
                name: found for name in names if (found := _figure(some, name, tested[name].get(kind)))
            },
            "price": _price([case for case in some if case.acted and not case.left_out]),
        }
        for kind, some in kinds.items()
    ]


def gains(cases: Sequence[Case], metric: str, *, acted: bool) -> list[float]:
    """Compute fired minus quiet at each decision that fired, or that did not."""
    return [gain for case in cases if case.acted is acted and (gain := case.gain(metric)) is not None]


def _figure(cases: Sequence[Case], metric: str, gain: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Summarise one figure of one kind, or None if it has no value both ways."""
    fired, quiet = (gains(cases, metric, acted=acted) for acted in (True, False))
    if not fired and not quiet:
        return None
    better, worse = (sum(sign * one > SAME for one in fired) for sign in (1, -1))
    missed = sum(one > SAME for one in quiet)
    other = comparison.family({"": quiet}).get("", {"ci95": None})
    return {
        "fired": len(fired),
        "better": better,
        "tied": len(fired) - better - worse,
        "worse": worse,
        "precision": better / len(fired) if fired else None,
        "quiet": len(quiet),
        "missed": missed,
        "recall": better / (better + missed) if better + missed else None,
        "gain": gain,
        "gain_had_it_fired": fmean(quiet) if quiet else None,
        "gain_had_it_fired_ci95": other["ci95"],
        "touched": any(abs(one) > SAME for one in (*fired, *quiet)),
    }


def _price(fired: Sequence[Case]) -> dict[str, Any]:
    seconds = [case.seconds for case in fired if case.seconds is not None]
    return {
        "n": len(fired),
        "calls": fmean(case.calls for case in fired) if fired else None,
        "tokens": fmean(case.tokens for case in fired) if fired else None,
        "seconds": fmean(seconds) if seconds else None,
        "timed": len(seconds),
    }


# The figure that a family of routes is to improve; of others it is what is found.
CLAIMS: Mapping[Family, str] = {"corrective": "supported_accuracy", "structured": "correct"}
FOUND = "recall@10"
COMPARED = ("delta", "ci95", "n", "wins", "ties", "losses")  # of a difference that was not planned


def claim(route: str, figures: Sequence[str]) -> str:
    """Return the figure that a route claims to improve, of those that the baseline has."""
    wanted = CLAIMS.get(every()[route].family, FOUND)
    return wanted if wanted in figures else FOUND


def route_table(
    outcomes: Outcomes, values: ByRoute, audited: Sequence[str], baselines: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return a row a route: the mean of each figure with its interval under "ci95" and over how many
    questions under "counts", the differences from each baseline under "against", and what it took under
    "use".

    "planned" is the difference of an audited route from the first baseline in the figure that it claims to
    improve, "claim": one Holm family.
    """
    names = known(values)
    rows = means_of(values, names, names)
    comparable = known({baselines[0]: values[baselines[0]]})
    judged = {route: claim(route, comparable) for route in audited}
    planned = comparison.family(
        {route: differences(values, route, baselines[0], figure) for route, figure in judged.items()}
    )
    for route, row in rows.items():
        row |= {"counts": counted(values[route], names), "use": use([by[route] for by in outcomes.values()])}
        row["against"] = {}
        for one in baselines:
            if one != route and one in values:
                family = comparison.family({name: differences(values, route, one, name) for name in names})
                row["against"][one] = {
                    name: {key: found[key] for key in COMPARED} for name, found in family.items()
                }
        if route in judged:
            row |= {"claim": judged[route], "planned": planned.get(route)}
    return rows


def use(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a route's mean usage per question, and how often it failed. "seconds" are the route's own, as if
    it ran alone; calls from the cache or a recording count the time they took when they were made.
    "seconds_timed" cover only the "timed" questions, whose calls were all made for them, by this route or by
    one that ran in parallel.
    """
    ok = [one for one in outcomes if one.status == "ok"]
    now = [one.ms for one in ok if all(live(call, one.began) for call in one.asked)]
    count = max(1, len(ok))
    return {
        "asked": len(outcomes),
        "failed": len(outcomes) - len(ok),
        "calls": sum(one.calls for one in ok) / count,
        "tokens": sum(one.tokens for one in ok) / count,
        "seconds": sum(one.ms for one in ok) / count / 1000,
        "seconds_timed": sum(now) / len(now) / 1000 if now else None,
        "timed": len(now),
        "errors": sorted({one.error for one in outcomes if one.error})[:5],
    }
