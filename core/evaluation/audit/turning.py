"""Asks each question of an evaluation again, with one decision of one route turned, and keeps what came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from core.domain.ranked import Ids
from core.evaluation import runner
from core.evaluation.audit.loops import other_way
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.journal import Lines, lines_of
from core.evaluation.outcome import Outcome, Taken
from core.evaluation.runner import After, Course, Plan

if TYPE_CHECKING:
    from core.store import Store

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
