"""What other values of a route's knobs make of its stored rankings, as far as that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from core.errors import BadInput
from core.reading import Grading, gradings
from core.route import KnobSpec, Route
from core.types import RouteResult, Scored, Span
from core.whatif.fusion import Fusion, fusions, outcome, recompute, settings
from core.whatif.grading import MeanRule, at, by_best, by_mean
from core.whatif.keeping import CALIBRATED
from core.whatif.knobs import tuned
from core.whatif.scored import Gate, gates

FUSED = ("k", "alpha", "norm", "lam", "pool", "weights")  # inputs of fusion steps that knobs tune
OWN = 2  # a route's own lists; one besides them is not searched at all with weight 0
How = Literal["fusion", "decisions", "run"]
Values = Mapping[str, Any]  # by knob
Keeps = Callable[[str, Any], bool]  # (input, another value of it) -> whether the step decides the same


@dataclass(frozen=True, slots=True)
class Way:
    """How other values of `knobs` are tried on a route's results, each "status ok".

    "fusion": the step that they set is done again. "decisions": the ranking stays where every decision that
    they set stays. "run": it takes a run. `steps` are the questions' fusions; `untouched` questions went by
    none of the steps and keep their ranking; any other question takes a run.
    """

    how: How
    knobs: tuple[KnobSpec, ...]
    ran: Values
    results: Mapping[str, RouteResult]
    steps: Mapping[str, Fusion] = field(default_factory=dict)
    untouched: frozenset[str] = frozenset()

    def rankings(self, question: str, values: Values) -> tuple[Scored, ...]:
        """The question's ranking with `values` of the knobs; () where it takes a run.

        Two where a list lost all its weight: with what only that list has at the end, and without, as a route
        may leave out a search that weighs nothing. What both say holds.
        """
        result = self.results[question]
        if all(values[knob.name] == self.ran.get(knob.name) for knob in self.knobs):
            return (_stored(result),)
        if question in self.untouched:
            return (_stored(result),)
        if self.how == "decisions":
            same = all(_same(result, knob, self.ran, values) for knob in self.knobs)
            return (_stored(result),) if same else ()
        step = self.steps.get(question)
        return () if step is None else _again(result, step, _changes(self.knobs, values))


def way(route: Route, names: Sequence[str], results: Mapping[str, RouteResult], ran: Values) -> Way:
    """How other values of the knobs `names` are tried on `results`, by question; BadInput for no knob.

    `ran` are the values that the results were made with, those left out at the defaults.
    """
    ran = route.settle(ran)
    by_name = {knob.name: knob for knob in route.knobs}
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise BadInput(f"route {route.name} has no knob {name!r}; it has: {known}")
    knobs = tuple(by_name[name] for name in names)
    stems = [knob.tunes.partition(".")[0] for knob in knobs]
    if all(stem in FUSED for stem in stems):
        return _fusion(knobs, ran, results)
    if all(stems) and not any(stem in FUSED for stem in stems):
        return _decisions(knobs, ran, results)
    return Way("run", knobs, ran, results)


def _fusion(knobs: tuple[KnobSpec, ...], ran: Values, results: Mapping[str, RouteResult]) -> Way:
    steps: dict[str, Fusion] = {}
    none: set[str] = set()
    for question, result in results.items():
        all_ = fusions(result)
        own = [one for one in all_ if _sets(one, knobs, ran)]
        if not own and not any(one.lack for one in all_):
            none.add(question)
        elif len(own) == 1 and _makes_ranking(result, own[0]):
            steps[question] = own[0]
    # Where no question went by such a step, the value in use may be the one that leaves the step out.
    return Way("fusion" if steps else "run", knobs, ran, results, steps, frozenset(none if steps else ()))


def _decisions(knobs: tuple[KnobSpec, ...], ran: Values, results: Mapping[str, RouteResult]) -> Way:
    told = {q: [_held(result, knob, ran) for knob in knobs] for q, result in results.items()}
    none = {question for question, spans in told.items() if not any(spans)}
    known = any(_same(results[q], knob, ran, ran) for q in told if q not in none for knob in knobs)
    return Way("decisions" if known else "run", knobs, ran, results, {}, frozenset(none if known else ()))


def _sets(fusion: Fusion, knobs: Sequence[KnobSpec], ran: Values) -> bool:
    """Whether the knobs set this step: it has all they tune, at the values the route ran with."""
    values = dict(fusion.values)
    if fusion.method == "linear" and len(fusion.lists) == OWN:
        values["alpha"] = fusion.values["weights.1"]
    return all(values.get(name) == ran[knob.name] for knob in knobs for name in tuned(knob))


def _makes_ranking(result: RouteResult, fusion: Fusion) -> bool:
    return not fusion.lack and outcome(result, fusion, fusion.span.hits or ()).hits is not None


def _again(result: RouteResult, fusion: Fusion, changes: Values) -> tuple[Scored, ...]:
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


def _changes(knobs: Sequence[KnobSpec], values: Values) -> dict[str, Any]:
    return {name: values[knob.name] for knob in knobs for name in tuned(knob)}


def _held(result: RouteResult, knob: KnobSpec, ran: Values) -> list[Span]:
    """The steps that the knob sets: those with its input at the value the route ran with, or, where that
    stands for the calibrated one, at any.
    """
    calibrated = knob.tunes in CALIBRATED and ran[knob.name] == 0
    return [
        span
        for span in result.spans
        if knob.tunes in span.inputs and (calibrated or span.inputs[knob.tunes] == ran[knob.name])
    ]


def _same(result: RouteResult, knob: KnobSpec, ran: Values, values: Values) -> bool:
    """Whether every step that the knob sets is known to decide as it did, with all of `values`."""
    keep = _keeps(result, ran, values)
    return all(span.id in keep and keep[span.id](knob.tunes, values[knob.name])
               for span in _held(result, knob, ran))  # fmt: skip


def _keeps(result: RouteResult, ran: Values, values: Values) -> dict[int, Keeps]:
    """By step: whether it decides the same with another value of an input."""
    found: dict[int, Keeps] = {gate.span.id: partial(_by_score, gate) for gate in gates(result)}
    for grading in gradings(result):
        if by_best(grading):
            found[grading.span.id] = partial(_by_best, grading, ran, values)
        elif (rule := by_mean(grading)) is not None:
            found[grading.span.id] = partial(_by_mean, rule)
    return found


def _by_score(gate: Gate, _name: str, value: Any) -> bool:
    return gate.decide(value) == gate.decision


def _by_best(grading: Grading, ran: Values, values: Values, _name: str, _value: Any) -> bool:
    """Both edges at once: one alone might pass the other."""
    low, high = (_edge(edge, getattr(grading, edge), ran, values) for edge in CALIBRATED)
    if low is None or high is None or low > high:
        return False
    return at(grading.grades, low, high).decision == grading.decision


def _by_mean(rule: MeanRule, name: str, value: Any) -> bool:
    stored = {"threshold": rule.threshold, "gain": rule.gain}
    return name in stored and rule.decide(**{**stored, name: value}) == rule.decide(**stored)


def _edge(edge: str, stored: float, ran: Values, values: Values) -> float | None:
    """A threshold of a grader; None where it is to be the calibrated one, and that is not known."""
    wanted = values.get(edge)
    if wanted is None or wanted == ran.get(edge):
        return stored
    return None if wanted == 0 else float(wanted)


def _stored(result: RouteResult) -> Scored:
    return tuple((hit.passage.id, hit.score) for hit in result.hits)
