"""The effect of other parameter values on a route's stored rankings, as far as it follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.analysis.run_view import gradings, recorded
from core.analysis.what_if.fusion import ReplayedFusion, fusions, outcome, recompute, settings
from core.analysis.what_if.grading import again, at, by_best, by_mean, gates
from core.analysis.what_if.parameters import CALIBRATED, sets
from core.domain.errors import BadInput
from core.domain.outputs import WebGrades
from core.domain.types import RouteResult, Scored, Span
from core.routes.declare import Parameter, Route

OWN = 2  # a route's own lists; one besides them is not searched at all with weight 0
How = Literal["fusion", "decisions", "run"]
Values = Mapping[str, Any]  # by parameter


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
