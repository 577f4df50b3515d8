"""The effect of other parameter values on a route's stored rankings, as far as it follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from core.analysis.run_view import Recorded, gradings, recorded
from core.analysis.what_if.fusion import ReplayedFusion, fusions, outcome, recompute, settings
from core.analysis.what_if.grading import Gate, again, at, by_best, by_mean, gates
from core.analysis.what_if.parameters import CALIBRATED, sets
from core.domain.errors import BadInput
from core.domain.outputs import Grading, Round, WebGrades
from core.domain.types import RouteResult, Scored, Span
from core.routes.declare import Parameter, Route

OWN = 2  # a route's own lists; one besides them is not searched at all with weight 0
How = Literal["fusion", "decisions", "run"]
Values = Mapping[str, Any]  # by parameter
Keeps = Callable[[str, Any], bool]  # (argument, another value of it) -> whether the step decides the same


@dataclass(frozen=True, slots=True)
class Way:
    """The method of trying other values of `parameters` on a route's results, each "status ok". "fusion": the
    step that they set is repeated. "decisions": the ranking is unchanged if every decision that they set is
    unchanged. "run": it needs a run. `steps` are the questions' fusions; `untouched` questions used none of
    the steps and keep their ranking; any other question needs a run.
    """

    how: How
    parameters: tuple[Parameter, ...]
    ran: Values
    results: Mapping[str, RouteResult]
    steps: Mapping[str, ReplayedFusion] = field(default_factory=dict)
    untouched: frozenset[str] = frozenset()

    def rankings(self, question: str, values: Values) -> tuple[Scored, ...]:
        """Return the question's ranking with `values` of the parameters, or () if it takes a run.

        Two where a list lost all its weight: with what only that list has at the end, and without, as a route
        may leave out a search that weighs nothing. What both say holds.
        """
        result, step = self.results[question], self.steps.get(question)
        as_ran = all(values[parameter.name] == self.ran.get(parameter.name) for parameter in self.parameters)
        if as_ran or question in self.untouched or (self.how == "decisions" and self._same(question, values)):
            return (tuple((hit.passage.id, hit.score) for hit in result.hits),)
        if step is None:
            return ()
        changes = [sets(parameter, step.span, values[parameter.name]) for parameter in self.parameters]
        return _again(result, step, {name: value for one in changes for name, value in one.items()})

    def _same(self, question: str, values: Values) -> bool:
        """Return whether every step that the parameters set is known to decide as before."""
        result = self.results[question]
        keep = _keeps(result, self.ran, values)
        return all(
            span.id in keep and keep[span.id](name, value)
            for parameter in self.parameters
            for span in result.spans
            for name, value in sets(parameter, span, values[parameter.name]).items()
        )


def way(route: Route, names: Sequence[str], results: Mapping[str, RouteResult], ran: Values) -> Way:
    """Return how to try other values of the parameters `names` on `results`, by question. `ran` are the
    values that the results were made with, others at the defaults. Raises BadInput for an unknown parameter.
    """
    ran = route.settle(ran)
    by_name = {parameter.name: parameter for parameter in route.parameters}
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise BadInput(f"route {route.name} has no parameter {name!r}; it has: {known}")
    parameters = tuple(by_name[name] for name in names)
    # the steps with an argument that one of the parameters set
    touched = {
        q: [span for span in result.spans if not {*names}.isdisjoint(span.set_by.values())]
        for q, result in results.items()
    }
    seen = {name for spans in touched.values() for span in spans for name in span.set_by.values()}
    if not seen.issuperset(names):  # it does what no step tells
        return Way("run", parameters, ran, results)
    none = frozenset(question for question, spans in touched.items() if not spans)
    steps = {q: found for q, spans in touched.items() if (found := _fusion(results[q], spans, parameters))}
    if steps:
        return Way("fusion", parameters, ran, results, steps, none)
    decisions = Way("decisions", parameters, ran, results, {}, none)
    known_ones = any(spans and decisions._same(q, ran) for q, spans in touched.items())
    return decisions if known_ones else Way("run", parameters, ran, results)


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


def _keeps(result: RouteResult, ran: Values, values: Values) -> dict[int, Keeps]:
    """By step: whether it decides the same with another value of an argument."""
    found: dict[int, Keeps] = {gate.span.id: partial(_by_score, gate) for gate in gates(result)}
    for step in gradings(result):
        if by_best(step.output):
            found[step.span.id] = partial(_by_best, step, ran, values)
        elif (judged := by_mean(step.output)) is not None:
            found[step.span.id] = partial(_by_mean, judged)
    for web in recorded(result.spans, WebGrades):
        found[web.span.id] = partial(_by_web, web, ran, values)
    return found


def _by_web(step: Recorded[WebGrades], ran: Values, values: Values, name: str, _value: Any) -> bool:
    """Return whether the same number of web results is trusted, which is all that counts while the corpus is
    not trusted.
    """
    high = _edge(step, "high", ran, values)
    grades = [one.grade for one in step.output.grades if one.grade is not None]
    if name != "high" or high is None:
        return False
    return sum(one >= high for one in grades) == sum(one >= step.output.high for one in grades)


def _by_score(gate: Gate, name: str, value: Any) -> bool:
    return name == gate.name and gate.decide(value) == gate.decision


def _by_best(step: Recorded[Grading], ran: Values, values: Values, name: str, _value: Any) -> bool:
    """Both edges at once: one alone might pass the other."""
    if name not in CALIBRATED:
        return False
    low, high = (_edge(step, edge, ran, values) for edge in CALIBRATED)
    if low is None or high is None or low > high:
        return False
    return at(step.output.grades, low, high).decision == step.output.decision


def _by_mean(judged: Round, name: str, value: Any) -> bool:
    stored = {"threshold": judged.threshold, "gain": judged.gain}
    return name in stored and again(judged, **{**stored, name: value}) == again(judged, **stored)


def _edge(
    step: Recorded[Grading] | Recorded[WebGrades], edge: str, ran: Values, values: Values
) -> float | None:
    """Return a threshold of a grader, or None if it is to be the calibrated one, and that is not known."""
    parameter = step.span.set_by.get(edge, "")
    wanted = values.get(parameter)
    if wanted is None or wanted == ran.get(parameter):
        stored: float = getattr(step.output, edge)
        return stored
    return None if wanted == 0 else float(wanted)
