"""Finds the decisions that routes make by themselves, read from the steps' declarations; asks each question
again with one of them turned; and makes figures of both ways: precision, recall, gain when fired, price.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from core.analysis.metrics import ANSWERS
from core.domain.needs import Family
from core.domain.ranked import Ids
from core.engine.engine import Engine
from core.evaluation import comparison, runner, scoring
from core.evaluation.comparison import SAME, ByRoute, Row, counted, differences, means_of
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Asked, Lines, Outcome, Outcomes, Taken
from core.evaluation.runner import After, Course, Plan
from core.evaluation.scoring import route_values
from core.routes.declare import Route
from core.routes.registry import routes
from core.routes.registry import routes as every
from core.steps import Steps
from core.steps.decisions import ANY, Decided
from core.steps.step import CONTRACTS
from core.store import Store

BASELINE = "hybrid_rrf"
BASELINES = (BASELINE, "rerank")
Pairs = tuple[tuple[str, str], ...]  # (the decision that fires, the decision that changes nothing)


@cache
def fires() -> Mapping[str, Pairs]:
    """By the name of a step: the pairs its outcome declares (`Decided.FIRES`). Steps without any are left
    out.
    """
    found: dict[str, Pairs] = {}
    for one in CONTRACTS.values():
        if isinstance(one.returns, type) and issubclass(one.returns, Decided) and one.returns.FIRES:
            found[one.name] = one.returns.FIRES
    return found


def other_way(step: str, decision: str) -> tuple[bool, str] | None:
    """Return whether a decision of a step fired and the decision to turn it to, or None if no pair names it.
    A quiet decision of several pairs is turned to the first of them.
    """
    pairs = fires().get(step, ())
    for fired, quiet in pairs:
        if decision == fired or (fired == ANY and decision != quiet):
            return True, quiet
    return next(((False, fired) for fired, quiet in pairs if decision == quiet and fired != ANY), None)


@cache
def own(route: str) -> frozenset[str]:
    """Return the deciding steps that a route's function calls, itself or through steps, and the baseline's
    does not: whether to abstain is decided by every answer alike, and is no choice of a loop. Of the
    baselines all are their own.
    """
    common = frozenset() if route in BASELINES else _called(routes()[BASELINE].function, "do")
    return (_called(routes()[route].function, "do") - common) & fires().keys()


def loops() -> list[Route]:
    """Return the routes that make decisions of their own."""
    return [route for route in routes().values() if route.name not in BASELINES and own(route.name)]


def _called(function: Callable[..., Any], owner: str) -> frozenset[str]:
    """Return the names of the steps that a function takes from its variable `owner`, and those that they
    take, or functions that it hands the variable to.
    """
    found: set[str] = set()
    seen: set[Callable[..., Any]] = set()
    waiting = [(function, owner)]
    while waiting:
        one, variable = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.__qualname__ in CONTRACTS:
            found.add(CONTRACTS[one.__qualname__].name)
        for node in ast.walk(_text(one)):
            if isinstance(node, ast.Attribute) and _is(node.value, variable):
                method = getattr(Steps, node.attr, None)
                if inspect.isfunction(method):
                    waiting.append((inspect.unwrap(method), "self"))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                # a function of its module that is called with the variable
                other = one.__globals__.get(node.func.id)
                if inspect.isfunction(other):
                    given = [*zip(inspect.signature(other).parameters, node.args, strict=False)]
                    given += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
                    waiting += [(other, name) for name, value in given if _is(value, variable)]
    return frozenset(found)


def _is(node: ast.AST, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable


@cache
def _text(function: Callable[..., Any]) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


TURNED = "turned.jsonl"


@dataclass(frozen=True, slots=True)
class Turned:
    """A route rerun with the first decision of `step` turned from `was` to `decision`. `fired`: whether `was`
    is the decision that intervenes.
    """

    route: str
    step: str
    was: str
    decision: str
    fired: bool
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BothWays:
    """All turned decisions of one question, next to the run `run` in which nothing was turned."""

    run: str
    turned: tuple[Turned, ...]


class Turns(Lines[BothWays]):
    """The reruns of each question, one line each."""

    name = TURNED
    adapter = TypeAdapter(BothWays)

    @staticmethod
    def well(item: BothWays) -> bool:
        """Return whether every route that was rerun, and its answer, ended well."""
        return all(one.outcome.status == "ok" and not one.outcome.error for one in item.turned)


def first_of(found: Outcome, steps: Collection[str]) -> list[Taken]:
    """Return the first decision of each of these steps."""
    first: dict[str, Taken] = {}
    for taken in found.decided:
        if taken.step in steps:
            first.setdefault(taken.step, taken)
    return list(first.values())


def turning(
    engine: Engine,
    labelled: LabelledSet,
    plan: Plan,
    turned: Mapping[str, Collection[str]],
    folder: Path,
    conditions: Mapping[str, Any],
    stale: Sequence[str],
    course: Course,
) -> Callable[[Store | None], AbstractContextManager[After]]:
    """Return the work of an evaluation next to each question; see core.evaluation.experiment.perform.
    `turned` gives, by route, the steps whose decisions are turned. A question that was turned before, and not
    rerun since, is not turned again. A fresh course also deletes the files `stale`, which were derived from
    the discarded results.
    """
    ids, fresh = Ids(), course.get("fresh", False)
    ended, warn = course.get("ended", lambda: False), course.get("warn", lambda _warning: None)

    @contextmanager
    def beside(runs: Store | None) -> Iterator[After]:
        for name in stale if fresh else ():
            (folder / name).unlink(missing_ok=True)
        with Turns.within(folder, conditions, fresh=fresh, retry=course.get("retry", False)) as lines:

            def after(question: Question, outcomes: Mapping[str, Outcome]) -> bool:
                run = next(one.run for one in outcomes.values())
                if question.id in lines.done and lines.done[question.id].run == run:
                    return True
                done = []
                for route, steps in turned.items():
                    found = outcomes[route]
                    for taken in first_of(found, steps) if found.status == "ok" else ():
                        way = other_way(taken.step, taken.decision)
                        if way is None:
                            continue
                        one = again(question, route, taken, way, runs)
                        if one is None:
                            return False
                        done.append(one)
                if runs is not None:
                    runs.flush()
                lines.done[question.id] = BothWays(run, tuple(done))
                lines.add(question.id, lines.done[question.id])
                return True

            yield after

    def again(
        question: Question, route: str, taken: Taken, way: tuple[bool, str], runs: Store | None
    ) -> Turned | None:
        fired, decision = way
        own_parameters = {name: values for name, values in plan.parameters.items() if name == route}
        forced = replace(plan, routes=(route,), parameters=own_parameters, forced={taken.step: decision})
        run = None if ended() else runner.ask(engine, forced.request(question.query), ended, warn)
        if run is None:
            return None
        if runs is not None:
            runs.save(run)
        found = runner.outcomes_of(run, question, labelled, ids, kept=runs is not None)[route]
        return Turned(route, taken.step, taken.decision, decision, fired, found)

    return beside


def turned_in(folder: Path) -> dict[str, BothWays]:
    """Read the turned decisions by question, or {} if nothing was."""
    return Turns.saved(folder) if (folder / TURNED).is_file() else {}


RANKINGS = ("ndcg@10", "recall@10")
FIGURES = (*RANKINGS, "supported_accuracy", "correct")  # that a decision is judged by
OTHER = "decided otherwise when asked again"
MISSED = "did not come to the decision when asked again"
FAILED = "failed when asked again"
Measure = Callable[[Outcomes, Sequence[str]], ByRoute]
NOTHING: ByRoute = {}


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


def measured(
    labelled: LabelledSet, outcomes: Outcomes, names: Sequence[str], executed: ByRoute = NOTHING
) -> ByRoute:
    """Return the measures of the outcomes of routes: their rankings where the question is labelled, their
    answers if they gave one, and what was `executed` of database queries.
    """
    written, found = scoring.measured(labelled, outcomes, names), {}
    for name in names:
        ranked = route_values(labelled, outcomes, name, metrics=RANKINGS)
        parts: tuple[Mapping[str, Row], ...] = (ranked, written[name], executed.get(name, {}))
        ids = dict.fromkeys(id for part in parts for id in part)
        found[name] = {id: {k: v for part in parts for k, v in part.get(id, {}).items()} for id in ids}
    return found


def cases(outcomes: Outcomes, turned: Mapping[str, BothWays], measure: Measure) -> list[Case]:
    """Return every decision that was turned, with the figures of both ways."""
    acted = measure(outcomes, list(dict.fromkeys(route for by in outcomes.values() for route in by)))
    # A stand-in for a route's name, under which its turned outcomes are measured.
    other = {
        q: {f"{one.route}\n{one.step}": one.outcome for one in both.turned} for q, both in turned.items()
    }
    forced = measure(other, list(dict.fromkeys(name for by in other.values() for name in by)))
    found = []
    for question, both in turned.items():
        for one in both.turned:
            itself, again = outcomes.get(question, {}).get(one.route), one.outcome
            if itself is None or itself.run != both.run:
                continue  # it was asked again since
            ways = (itself, acted[one.route]), (again, forced[f"{one.route}\n{one.step}"])
            (fired, first), (quiet, second) = ways if one.fired else ways[::-1]
            left_out = FAILED
            if again.status == "ok":
                taken = next((taken for taken in again.decided if taken.step == one.step), None)
                left_out = MISSED
                if taken is not None and taken.forced:
                    left_out = "" if taken.forced == one.was else OTHER
            made = timed(fired.asked, quiet.asked, itself.began)
            found.append(
                Case(
                    question,
                    one.route,
                    one.step,
                    one.was,
                    one.decision,
                    one.fired,
                    first.get(question, {}),
                    second.get(question, {}),
                    fired.calls - quiet.calls,
                    fired.tokens - quiet.tokens,
                    (fired.ms - quiet.ms) / 1000 if made else None,
                    (itself.run, again.run),
                    left_out,
                )
            )
    return found


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
            "price": {
                "n": len(fired),
                "calls": fmean(case.calls for case in fired) if fired else None,
                "tokens": fmean(case.tokens for case in fired) if fired else None,
                "seconds": fmean(seconds) if seconds else None,
                "timed": len(seconds),
            },
        }
        for kind, some in kinds.items()
        for fired in [[case for case in some if case.acted and not case.left_out]]
        for seconds in [[case.seconds for case in fired if case.seconds is not None]]
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


# The figure that a family of routes is to improve; of others it is what is found.
CLAIMS: Mapping[Family, str] = {"corrective": "supported_accuracy", "structured": "correct"}
FOUND = "recall@10"
COMPARED = ("delta", "ci95", "n", "wins", "ties", "losses")  # of a difference that was not planned


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
    wanted = {route: CLAIMS.get(every()[route].family, FOUND) for route in audited}
    judged = {route: name if name in comparable else FOUND for route, name in wanted.items()}
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
