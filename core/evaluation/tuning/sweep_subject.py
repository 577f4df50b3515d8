"""A route of an evaluation with parameters to try on it, and its metrics at any of their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.analysis.metrics import by_question
from core.domain.errors import BadInput
from core.domain.types import RouteResult, Scored
from core.evaluation.dataset import LabelledSet
from core.evaluation.experiment_store import RUNS, Evaluation
from core.evaluation.tuning.batch_run import counted
from core.evaluation.tuning.sweep_replay import Way, way
from core.routes.registry import pick
from core.store.files import reading
from core.store.runs import read_result

Point = tuple[Any, ...]  # one value for each parameter
Progress = Callable[[int, int], None]  # (questions read, of how many)


@dataclass(frozen=True, slots=True)
class Subject:
    """A route of an evaluation with parameters to try on it, and its results with their steps.

    `results` are those of the labelled questions at which the route ended well; `failed` labelled questions
    it did not, `unlabelled` ones have no relevant passage.
    """

    evaluation: Evaluation
    way: Way
    route: str
    now: Point
    failed: tuple[str, ...]
    unlabelled: int

    @property
    def labelled(self) -> LabelledSet:
        """The questions with their labels."""
        return self.evaluation.labelled

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters tried."""
        return tuple(parameter.name for parameter in self.way.parameters)

    def values(self, point: Point) -> dict[str, Any]:
        """Return a point by parameter."""
        return dict(zip(self.names, point, strict=True))

    def parameters(self, point: Point) -> dict[str, Any]:
        """All parameters that a run at a point is made with, those left out at the defaults."""
        return {**self.way.ran, **self.values(point)}


class Rankings:
    """The metrics of a subject at any point: from stored steps where that tells, else from runs.

    Measured once a point and set of runs, whatever the metric.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._again: dict[Point, tuple[dict[str, dict[str, float]], ...]] = {}
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, float]] = {}  # by question and order
        self._ran: dict[tuple[Point, str], tuple[Scored, dict[str, float]]] = {}

    def stored(self, point: Point, metric: str) -> dict[str, float]:
        """Return the metric by question, of those whose ranking at `point` follows from what is stored."""
        if point not in self._again:
            self._again[point] = self._measure(point)
        first, second = self._again[point]
        # A ranking that may be one of two tells a metric on which both agree.
        return {q: row[metric] for q, row in first.items() if second.get(q, row)[metric] == row[metric]}

    def ran(self, point: Point, question: str, hits: Scored, metric: str) -> float:
        """Return the metric of a run's ranking."""
        known = self._ran.get((point, question))
        if known is None or known[0] is not hits:
            values = self._values({question: hits})[question]
            known = self._ran[point, question] = hits, values
        return known[1][metric]

    def measured(self, point: Point) -> bool:
        """Return whether the point was measured before, so that `stored` is quick."""
        return point in self._again

    def _measure(self, point: Point) -> tuple[dict[str, dict[str, float]], ...]:
        values, way = self.subject.values(point), self.subject.way
        found = {question: way.rankings(question, values) for question in way.results}
        return tuple(self._values({q: some[n] for q, some in found.items() if len(some) > n}) for n in (0, 1))

    def _values(self, rankings: Mapping[str, Scored]) -> dict[str, dict[str, float]]:
        """Return the metrics by question; of a ranking that another point had too they are not measured
        again.
        """
        labelled = self.subject.labelled
        kept = {q: counted(labelled, q, hits) for q, hits in rankings.items()}
        keys = {q: (q, tuple(id for id, _ in hits)) for q, hits in kept.items()}
        new = {q: hits for q, hits in kept.items() if keys[q] not in self._known}
        if new:
            judged = {q: labelled.judged(q) for q in new}
            measured = by_question(judged, new, relevant_from=labelled.relevant_from)
            self._known |= {keys[q]: row for q, row in measured.items()}
        return {q: self._known[key] for q, key in keys.items()}


def subject(
    evaluation: Evaluation,
    route: str,
    parameters: Sequence[str],
    progress: Progress = lambda _done, _total: None,
    loaded: Mapping[str, RouteResult] | None = None,
) -> Subject:
    """Return the route with `parameters` to try. Raises BadInput for a route or parameter that is not there,
    or without any labels.

    `loaded` are its results of the labelled questions where they were read before.
    """
    if route not in evaluation.routes:
        known = ", ".join(evaluation.routes)
        raise BadInput(f"route {route!r} is not in evaluation {evaluation.name}; it has: {known}")
    if not 1 <= len(set(parameters)) == len(parameters) <= 2:
        raise BadInput(
            f"parameters {', '.join(parameters) or 'none'}: give one parameter, or two different ones"
        )
    labelled = [id for id in evaluation.questions if evaluation.labelled.labelled(id)]
    if not labelled:
        raise BadInput(f"no question of evaluation {evaluation.name} has a relevant passage to measure with")
    found = loaded if loaded is not None else results(evaluation, route, labelled, progress)
    good = {id: result for id, result in found.items() if result.status == "ok"}
    if not good:
        raise BadInput(f"route {route} completed no labelled question of {evaluation.name}")
    (known_route,) = pick([route])
    ran = known_route.settle(evaluation.spec.get("parameters", {}).get(route, {}))
    path = way(known_route, parameters, good, ran)
    return Subject(
        evaluation,
        path,
        route,
        tuple(ran[name] for name in parameters),
        tuple(id for id in labelled if id not in good),
        len(evaluation.questions) - len(labelled),
    )


def results(
    evaluation: Evaluation,
    route: str,
    questions: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> dict[str, RouteResult]:
    """Return the route's results by question, in the evaluation's order; a question without a kept run is
    left out.

    Passages have their ids alone: their texts are not read. Raises BadInput where no runs are kept.
    """
    path = evaluation.folder / RUNS
    if not path.is_file():
        raise BadInput(
            f"evaluation {evaluation.name} has no stored runs ({RUNS} is missing) to recompute from; "
            "evaluate again"
        )
    asked = [id for id in evaluation.questions if questions is None or id in questions]
    found: dict[str, RouteResult] = {}
    with reading(path) as connection:
        for at, id in enumerate(asked):
            progress(at, len(asked))
            result = read_result(connection, evaluation.run_id(id), route)
            if result is not None:
                found[id] = result
    progress(len(asked), len(asked))
    return found
