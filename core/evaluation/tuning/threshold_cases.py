"""The thresholds that the steps of stored results held scores against, with what labels say of each score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.analysis.run_view import Recorded, gradings, strippings
from core.analysis.what_if.grading import ENOUGH, Gate, by_best, by_mean, floor_of, gates, known, nears
from core.domain.outputs import Grading, Written
from core.domain.types import RouteResult, Span
from core.evaluation.answers import Given, correct
from core.evaluation.calibration import Acts
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.quotes import survived
from core.evaluation.tuning.targets import (
    BEST,
    NO_GOLD,
    NO_GRADE,
    NO_QUOTE,
    NOT_TOLD,
    UNLABELLED,
    Found,
    Growing,
    Target,
    Told,
    Unit,
)


def found(
    results: Iterable[tuple[str, RouteResult]],
    labelled: LabelledSet,
    quotes: Mapping[str, Sequence[str]] | None = None,
) -> Found:
    """Every threshold in `results`, pairs of question id and result, in the order they are first met.

    `quotes` are the labelled quotes by question, for steps that cut passages into pieces. Of a step that a
    route takes several times for a question the first counts, so that a question has one vote.
    """
    questions = {question.id: question for question in labelled.questions}
    kept: dict[tuple[str, str], Growing] = {}
    unjudged: dict[tuple[str, str], str] = {}
    for id, result in results:
        if id not in questions:
            continue
        asked = _Asked(questions[id], labelled, tuple((quotes or {}).get(id, ())))
        met: set[str] = set()
        for told in (
            *_graded(result, asked),
            *_gated(result, asked, unjudged),
            *_floored(result, asked),
            *_stripped(result, asked),
        ):
            key = told.target.key
            if key in met:
                continue
            met.add(key)
            kept.setdefault((result.route, key), Growing(told.target)).add(id, told)
    return Found(tuple(one.done() for one in kept.values()), unjudged)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its labels."""

    question: Question
    labelled: LabelledSet
    quotes: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Return whether the labels mark some passage as relevant, or the question as unanswerable."""
        return self.labelled.labelled(self.question.id) or self.question.answerable is False

    def relevant(self, id: str) -> bool:
        """Return whether a passage is labelled relevant; an unjudged passage is not."""
        return self.labelled.qrels.get(self.question.id, {}).get(id, 0) >= self.labelled.relevant_from


def _graded(result: RouteResult, asked: _Asked) -> Iterator[Told]:
    """Yield the grades of passages: the best of a question against two thresholds, or the mean of a round."""
    for step in gradings(result):
        one = step.output
        values = [(grade.id, value) for grade in one.grades if (value := known(grade)) is not None]
        present = any(asked.relevant(grade.id) for grade in one.grades)
        # The best or the mean of several grades does not claim to be the probability that one is right.
        target = _target(
            result,
            step.span,
            unit="question",
            probability=False,
            positive="a passage labelled relevant is among those graded",
        )
        judged = by_mean(one)
        if judged is not None:
            made = target("threshold", "from", "the route accepts the results")
            yield _one(made, judged.threshold, asked, judged.mean, present)
        elif by_best(one):
            best = max((value for _, value in values), default=None)
            yield _one(target("high", "from", "the route trusts the results"), one.high, asked, best, present)
            yield _one(
                target("low", "below", "the route discards the results"), one.low, asked, best, present
            )
            yield _passages(result, step, values, asked)


def _passages(
    result: RouteResult, step: Recorded[Grading], values: Sequence[tuple[str, float]], asked: _Asked
) -> Told:
    """Each passage's own grade against the upper threshold: one from there on is enough to be trusted."""
    make = _target(result, step.span, unit="passage", probability=True, positive="it is labelled relevant")
    target, one = make("high", "from", "a passage counts as relevant"), step.output
    ungraded = len(one.grades) - len(values)
    if not asked.known:
        return Told(target, one.high, left_out={UNLABELLED: len(one.grades)})
    return Told(
        target,
        one.high,
        tuple((value, asked.relevant(id)) for id, value in values),
        {NO_GRADE: ungraded} if ungraded else {},
    )


def _gated(result: RouteResult, asked: _Asked, unjudged: dict[tuple[str, str], str]) -> Iterator[Told]:
    """Yield the decisions by one score for which labels show which way was right."""
    for gate in gates(result):
        truth = _truth(gate, result, asked)
        if truth is None:
            told = f"labels do not say when “{gate.ways[0]}” is right and when “{gate.ways[1]}”"
            unjudged[result.route, gate.span.name] = told
            continue
        positive, right = truth
        target = _target(result, gate.span, unit="question", probability=True, positive=positive)
        # What holds an answer back is a setting of all routes, unless a parameter of this one set it.
        everywhere = gate.ways == ENOUGH and gate.name == "threshold" and "threshold" not in gate.span.set_by
        made = target(gate.name, "from", f"the route decides “{gate.ways[0]}”", by_settings=everywhere)
        if isinstance(right, str):
            yield Told(made, gate.threshold, left_out={right: 1})
        else:
            yield Told(made, gate.threshold, ((gate.score, right),))


def _truth(gate: Gate, result: RouteResult, asked: _Asked) -> tuple[str, bool | str] | None:
    """Return the condition for the first way, and whether it holds or why that is unknown, or None if labels
    never tell.
    """
    if gate.ways == ENOUGH:
        told = "a passage labelled relevant is among those it read"
        shown = _shown(gate.span, result)
        if not asked.known:
            return told, UNLABELLED
        return told, NOT_TOLD if shown is None else any(map(asked.relevant, shown))
    unaided = _unaided(gate.span, result)
    if unaided is None:
        return None
    told = "the answer given without a search is right"
    right = correct_unaided(unaided, asked.question)
    return told, NO_GOLD if right is None else right


def correct_unaided(text: str, question: Question) -> bool | None:
    """Return whether an answer given without a search is right by the gold answers, or None without gold
    answers.
    """
    return correct(Given(text), question.answers, True) if question.answers else None


def _shown(span: Span, result: RouteResult) -> tuple[str, ...] | None:
    """Return the passages a step read, as recorded by the answer it wrote, or by the answer of the step that
    contains it.
    """
    spans = {one.id: one for one in result.spans}
    one: Span | None = span
    while one is not None:
        if isinstance(one.output, Written) and one.output.shown:
            return one.output.shown
        one = spans.get(one.parent) if one.parent is not None else None
    return None


def _unaided(span: Span, result: RouteResult) -> str | None:
    """Return the text written without a search, if a step decided on it."""
    given = {link.span for link in span.links}
    for one in result.spans:
        if one.id in given and isinstance(one.output, Written) and one.output.unaided:
            return one.output.text
    return None


def _floored(result: RouteResult, asked: _Asked) -> Iterator[Told]:
    """Passages dropped by a floor."""
    for near in nears(result):
        target = _target(
            result, near.span, unit="passage", probability=False, positive="it is labelled relevant"
        )
        made, floor = target("floor", "from", "a passage passes the filter"), near.output.floor or 0.0
        cosines = near.output.cosines
        judged = tuple((score, asked.relevant(id)) for id, score in cosines.items()) if asked.known else ()
        yield Told(made, floor, judged, {} if asked.known else {UNLABELLED: len(cosines)})


def _stripped(result: RouteResult, asked: _Asked) -> Iterator[Told]:
    """Pieces of passages kept by a floor; one is right to keep if a labelled quote survives in it, or it is a
    part of one.
    """
    for one in strippings(result):
        if (floor := floor_of(one.output)) is None:
            continue
        target = _target(
            result,
            one.span,
            unit="strip",
            probability=False,
            positive="it contains a labelled quote or is part of one",
        )
        made = target("floor", "from", "a piece passes the filter")
        if not asked.quotes:
            yield Told(made, floor, left_out={NO_QUOTE: len(one.output.sentences)})
            continue
        judged, best = [], 0
        for pieces in one.output.by_passage.values():
            highest = max((piece.score for piece in pieces if piece.score is not None), default=None)
            for piece in pieces:
                if piece.score is None or piece.score == highest:
                    best += 1
                else:
                    judged.append((piece.score, _of_quote(piece.text, asked.quotes)))
        yield Told(made, floor, tuple(judged), {BEST: best} if best else {})


def _of_quote(text: str, quotes: Sequence[str]) -> bool:
    plain = " ".join(text.split())
    whole = any(plain in " ".join(quote.split()) for quote in quotes) if plain else False
    return whole or any(survived(quotes, [text]))


def _target(
    result: RouteResult, span: Span, *, unit: Unit, probability: bool, positive: str
) -> Callable[..., Target]:
    """Return a maker of targets of one step."""

    def make(name: str, acts: Acts, act: str, *, by_settings: bool = False) -> Target:
        return Target(
            result.route,
            span.name,
            name,
            unit,
            acts,
            act,
            positive,
            probability,
            by_settings,
            ran=result.parameters,
            span=span,
        )

    return make


def _one(target: Target, threshold: float, asked: _Asked, score: float | None, positive: bool) -> Told:
    """One score a question."""
    if not asked.known:
        return Told(target, threshold, left_out={UNLABELLED: 1})
    if score is None:
        return Told(target, threshold, left_out={NO_GRADE: 1})
    return Told(target, threshold, ((score, positive),))
