"""Points of a sweep that take a run: in the background, a question at a time, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput
from core.domain.types import Scored
from core.engine.availability import missing
from core.evaluation.experiment_store import stamp
from core.evaluation.runner import Plan, Spread, run, spread
from core.evaluation.tuning.sweep_subject import Point, Subject
from core.routes.registry import pick

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace
    from core.engine.engine import Engine

Todo = Mapping[Point, Sequence[str]]  # the questions to ask at each point


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of asking: `seconds` and model `calls` by the route's figures in the evaluation, None if it
    was not measured with a model there. `asks`: a model may be asked at some point.
    """

    points: int
    questions: int
    seconds: float | None
    calls: int | None
    asks: bool


class Running(BackgroundJob):
    """The rankings of runs at points of a subject's grid, and the thread that makes them, begun by `ask`.

    `rankings` grows while it is under way: (point, question) -> ranking, None for a question that failed.
    """

    kind = "sweep"

    def __init__(self, engine: Engine, subject: Subject) -> None:
        super().__init__(f"{subject.route}.{','.join(subject.names)}", home=engine.settings.home)
        self.subject = subject
        self.rankings: dict[tuple[Point, str], Scored | None] = {}
        self.errors: dict[str, int] = {}  # message -> questions
        self._engine = engine
        self._todo: Todo = {}
        self._place: WorkPlace | None = None
        self._at_end.set()  # nothing is under way

    def ask(self, todo: Todo, workers: WorkPlace | None = None) -> None:
        """Ask in the background, by workers where some are given; what is under way goes on as it is."""
        if not self.done:
            return
        self._stopped = False
        self._cancel.clear()
        self._at_end.clear()
        self.error, self.errors = None, {}
        self.finished, self.total, self._todo = 0, sum(map(len, todo.values())), dict(todo)
        self._place = workers
        self.begin()

    def _do(self) -> None:
        evaluation, corpus = self.subject.evaluation, _corpus(self.subject)
        then = evaluation.figures.get("fingerprint")
        then = then or evaluation.run(next(iter(self.subject.way.results))).fingerprint
        if self._engine.corpus(corpus).fingerprint != then:
            raise BadInput(
                f"corpus {corpus} was reindexed since evaluation {evaluation.name}, so new runs cannot be "
                "compared with it; evaluate again"
            )
        with spread(self._place, self._engine) as elsewhere:
            for point, ids in self._todo.items():
                if self._cancel.is_set():
                    break
                self._ask(point, ids, elsewhere)

    def _ask(self, point: Point, ids: Sequence[str], elsewhere: Spread | None) -> None:
        subject, before = self.subject, self.finished
        wanted, route = set(ids), subject.route
        asked = tuple(q for q in subject.labelled.questions if q.id in wanted)
        labelled = replace(subject.labelled, questions=asked)
        plan = Plan(_corpus(subject), (route,), {route: subject.parameters(point)})

        def follow(done: int, _total: int) -> None:
            self.finished = before + done

        found, _ = run(
            self._engine, labelled, plan, progress=follow, ended=self._cancel.is_set, workers=elsewhere
        )
        for question, by in found.items():
            one = by[route]
            self.rankings[point, question] = tuple(one.hits) if one.status == "ok" else None
            if one.status != "ok":
                message = one.error or one.status
                self.errors[message] = self.errors.get(message, 0) + 1


def running(engine: Engine, subject: Subject) -> Running:
    """Return the runs of this process at points of `subject`'s parameters, whether any are under way or
    not.
    """
    folder = subject.evaluation.folder
    key = (str(engine.settings.home), str(folder), stamp(folder), subject.route, subject.names)
    return jobs.keep(Running, key, lambda: Running(engine, subject))


def lacking(engine: Engine, subject: Subject, todo: Todo) -> dict[Point, str]:
    """Why points cannot be run here, by point; those that can are not in it."""
    (route,) = pick([subject.route])
    gaps = missing(engine, _corpus(subject))
    found = {}
    for point in todo:
        needed = route.needed(route.settle(subject.parameters(point)))
        if reason := next((gaps[need] for need in needed if need in gaps), None):
            found[point] = reason
    return found


def asking(subject: Subject, todo: Todo) -> dict[Point, Sequence[str]]:
    """Return the part of `todo` that may call a language model."""
    (route,) = pick([subject.route])
    return {point: ids for point, ids in todo.items() if route.asks(route.settle(subject.parameters(point)))}


def cost(subject: Subject, todo: Todo) -> Cost:
    """Estimate the cost of running `todo`."""
    (route,) = pick([subject.route])
    count, asks = sum(map(len, todo.values())), bool(asking(subject, todo))
    asked = route.asks(route.settle(subject.way.ran))
    every = (by.get(subject.route) for by in subject.evaluation.outcomes.values())
    seen = [one for one in every if one is not None and one.status == "ok"]
    if not seen or (asks and not asked):
        return Cost(len(todo), count, None, None, asks)
    calls = round(sum(one.calls for one in seen) / len(seen) * count)
    return Cost(len(todo), count, sum(one.ms for one in seen) / len(seen) * count / 1000, calls, asks)


def _corpus(subject: Subject) -> str:
    return str(subject.evaluation.spec["corpus"])
