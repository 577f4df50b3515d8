"""A route of an evaluation with parameters to try on it, and its metrics at any of their values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from core.analysis.metrics import by_question
from core.analysis.run_view import gradings, recorded
from core.analysis.what_if.fusion import ReplayedFusion, fusions, outcome, recompute, settings
from core.analysis.what_if.grading import again, at, by_best, by_mean, gates
from core.analysis.what_if.parameters import CALIBRATED, sets
from core.domain.errors import BadInput
from core.domain.outputs import WebGrades
from core.domain.types import RouteResult, Scored, Span
from core.evaluation.dataset import LabelledSet
from core.evaluation.experiment_store import RUNS, Evaluation
from core.evaluation.tuning.batch_run import counted
from core.routes.declare import Parameter
from core.routes.registry import pick
from core.store.files import reading
from core.store.runs import read_result

Point = tuple[Any, ...]  # one value for each parameter
OWN = 2  # a route's own lists; one besides them is not searched at all with weight 0
How = Literal["fusion", "decisions", "run"]
Values = Mapping[str, Any]  # by parameter


@dataclass(frozen=True, slots=True)
class Subject:
    """A route of an evaluation with the parameters `tuned`, to try other values of on its results.

    `ran` are the values that it was measured with. `results` are those of the labelled questions at which it
    ended well; `failed` labelled questions it did not, `unlabelled` ones have no relevant passage. How other
    values are tried: "fusion": the step that they set is repeated. "decisions": the ranking is unchanged if
    every decision that they set is unchanged. "run": it needs a run. `steps` are the questions' fusions;
    `untouched` questions used none of the steps and keep their ranking; any other question needs a run.
    """

    evaluation: Evaluation
    route: str
    tuned: tuple[Parameter, ...]
    ran: Values
    results: Mapping[str, RouteResult]
    failed: tuple[str, ...]
    unlabelled: int
    how: How = "run"
    steps: Mapping[str, ReplayedFusion] = field(default_factory=dict)
    untouched: frozenset[str] = frozenset()

    @property
    def now(self) -> Point:
        """The values in use."""
        return tuple(self.ran[parameter.name] for parameter in self.tuned)

    @property
    def labelled(self) -> LabelledSet:
        """The questions with their labels."""
        return self.evaluation.labelled

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters tried."""
        return tuple(parameter.name for parameter in self.tuned)

    def values(self, point: Point) -> dict[str, Any]:
        """Return a point by parameter."""
        return dict(zip(self.names, point, strict=True))

    def parameters(self, point: Point) -> dict[str, Any]:
        """All parameters that a run at a point is made with, those left out at the defaults."""
        return {**self.ran, **self.values(point)}

    def rankings(self, question: str, values: Values) -> tuple[Scored, ...]:
        """Return the question's ranking with `values` of the parameters, or () if it takes a run.

        Two where a list lost all its weight: with what only that list has at the end, and without, as a route
        may leave out a search that weighs nothing. What both say holds.
        """
        result, step = self.results[question], self.steps.get(question)
        as_ran = all(values[parameter.name] == self.ran.get(parameter.name) for parameter in self.tuned)
        if as_ran or question in self.untouched or (self.how == "decisions" and self._same(question, values)):
            return (tuple((hit.passage.id, hit.score) for hit in result.hits),)
        if step is None:
            return ()
        changes = [sets(parameter, step.span, values[parameter.name]) for parameter in self.tuned]
        return _again(result, step, {name: value for one in changes for name, value in one.items()})

    def _same(self, question: str, values: Values) -> bool:
        """Return whether every step that the parameters set is known to decide as before."""
        result = self.results[question]
        scored = {gate.span.id: gate for gate in gates(result)}
        graded = {step.span.id: step.output for step in gradings(result)}
        web = {step.span.id: step.output for step in recorded(result.spans, WebGrades)}

        def edge(span: Span, name: str, stored: float) -> float:
            """Return a threshold of a grader, NaN if it is to be the calibrated one: that is not known."""
            setter = span.set_by.get(name, "")
            wanted = values.get(setter)
            if wanted is None or wanted == self.ran.get(setter):
                return stored
            return float(wanted) or math.nan

        def keeps(span: Span, name: str, value: Any) -> bool:
            if gate := scored.get(span.id):
                return name == gate.name and gate.decide(value) == gate.decision
            grading = graded.get(span.id)
            if grading is not None and by_best(grading):
                # both edges at once: one alone might pass the other
                low, high = edge(span, "low", grading.low), edge(span, "high", grading.high)
                known = name in CALIBRATED and low <= high
                return known and at(grading.grades, low, high).decision == grading.decision
            if grading is not None and (judged := by_mean(grading)) is not None:
                stored = {"threshold": judged.threshold, "gain": judged.gain}
                return name in stored and again(judged, **{**stored, name: value}) == again(judged, **stored)
            if (found := web.get(span.id)) is None or name != "high":
                return False
            # as many web results are trusted, which is all that counts while the corpus is not trusted
            high = edge(span, "high", found.high)
            grades = [one.grade for one in found.grades if one.grade is not None]
            trusted = sum(one >= found.high for one in grades)
            return not math.isnan(high) and sum(one >= high for one in grades) == trusted

        return all(
            keeps(span, name, value)
            for parameter in self.tuned
            for span in result.spans
            for name, value in sets(parameter, span, values[parameter.name]).items()
        )


class Rankings:
    """The metrics of a subject at any point: from stored steps where that tells, else from runs.

    Measured once a point and set of runs, whatever the metric.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._again: dict[Point, tuple[dict[str, dict[str, float]], ...]] = {}
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, float]] = {}  # by question and order

    def stored(self, point: Point, metric: str) -> dict[str, float]:
        """Return the metric by question, of those whose ranking at `point` follows from what is stored."""
        if point not in self._again:
            self._again[point] = self._measure(point)
        first, second = self._again[point]
        # A ranking that may be one of two tells a metric on which both agree.
        return {q: row[metric] for q, row in first.items() if second.get(q, row)[metric] == row[metric]}

    def ran(self, question: str, hits: Scored, metric: str) -> float:
        """Return the metric of a run's ranking."""
        return self._values({question: hits})[question][metric]

    def measured(self, point: Point) -> bool:
        """Return whether the point was measured before, so that `stored` is quick."""
        return point in self._again

    def _measure(self, point: Point) -> tuple[dict[str, dict[str, float]], ...]:
        values, about = self.subject.values(point), self.subject
        found = {question: about.rankings(question, values) for question in about.results}
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
    found = loaded if loaded is not None else results(evaluation, route, labelled)
    good = {id: result for id, result in found.items() if result.status == "ok"}
    if not good:
        raise BadInput(f"route {route} completed no labelled question of {evaluation.name}")
    (known_route,) = pick([route])
    by_name = {parameter.name: parameter for parameter in known_route.parameters}
    if unknown := [name for name in parameters if name not in by_name]:
        known = ", ".join(by_name) or "none"
        raise BadInput(f"route {route} has no parameter {unknown[0]!r}; it has: {known}")
    about = Subject(
        evaluation,
        route,
        tuple(by_name[name] for name in parameters),
        known_route.settle(evaluation.spec.get("parameters", {}).get(route, {})),
        good,
        tuple(id for id in labelled if id not in good),
        len(evaluation.questions) - len(labelled),
    )
    # the steps with an argument that one of the parameters set
    touched = {
        q: [span for span in result.spans if not {*parameters}.isdisjoint(span.set_by.values())]
        for q, result in good.items()
    }
    seen = {name for spans in touched.values() for span in spans for name in span.set_by.values()}
    if not seen.issuperset(parameters):  # it does what no step tells
        return about
    none = frozenset(question for question, spans in touched.items() if not spans)
    steps = {q: made for q, spans in touched.items() if (made := _fusion(good[q], spans, about.tuned))}
    if steps:
        return replace(about, how="fusion", steps=steps, untouched=none)
    decisions = replace(about, how="decisions", untouched=none)
    return (
        decisions if any(spans and decisions._same(q, about.ran) for q, spans in touched.items()) else about
    )


def results(
    evaluation: Evaluation,
    route: str,
    questions: Collection[str] | None = None,
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
        for id in asked:
            result = read_result(connection, evaluation.run_id(id), route)
            if result is not None:
                found[id] = result
    return found


def _fusion(
    result: RouteResult, touched: Sequence[Span], parameters: Sequence[Parameter]
) -> ReplayedFusion | None:
    """Return the fusion that makes the route's ranking, if it is all that the parameters set."""
    if len(touched) != 1:
        return None
    step = next((one for one in fusions(result) if one.span.id == touched[0].id and not one.lack), None)
    if step is None or outcome(result, step, step.span.hits or ()).hits is None:
        return None
    known = all(sets(parameter, step.span, 0).keys() <= step.values.keys() for parameter in parameters)
    return step if known else None


def _again(result: RouteResult, fusion: ReplayedFusion, changes: Values) -> tuple[Scored, ...]:
    try:
        fused = recompute(fusion, changes)
        now = settings(fusion, changes)
    except BadInput:  # a pool larger than what is kept, say
        return ()
    hits = outcome(result, fusion, fused).hits or ()
    if fusion.method == "marginal":
        return (hits,)
    count = len(fusion.lists)
    gone = [n for n in range(count) if now[f"weights.{n}"] == 0 != fusion.values[f"weights.{n}"]]
    if any(n >= OWN for n in gone):
        return ()
    if not gone:
        return (hits,)
    left = {hit.passage.id for n, one in enumerate(fusion.lists) if n not in gone for hit in one}
    without = tuple(hit for hit in hits if hit[0] in left)
    return (hits,) if without == hits else (hits, without)
