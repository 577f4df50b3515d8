"""Finds the decisions that routes make by themselves, read from the steps' declarations, and asks each
question of an evaluation again with one of them turned.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from core.domain.ranked import Ids
from core.evaluation import runner
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Lines, Outcome, Taken, lines_of
from core.evaluation.runner import After, Course, Plan
from core.routes.declare import Route
from core.routes.registry import routes
from core.steps import Steps
from core.steps.decisions import ANY, Decided
from core.steps.step import CONTRACTS

if TYPE_CHECKING:
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
    engine: runner.Asks,
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
        run = None if ended() else runner.ask(engine, question, forced, warn, ended)
        if run is None:
            return None
        if runs is not None:
            runs.save(run)
        found = runner.outcomes_of(run, question, labelled, ids, kept=runs is not None)[route]
        return Turned(route, taken.step, taken.decision, decision, fired, found)

    return beside


def read(folder: Path) -> dict[str, BothWays]:
    """Read the turned decisions by question, or {} if nothing was."""
    return lines_of(folder / TURNED, Turns.read) if (folder / TURNED).is_file() else {}
