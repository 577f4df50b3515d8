"""The thresholds that steps of stored results compared scores with, and what labels say of each score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from core.analysis.run_view import gradings, strippings
from core.analysis.what_if.grading import ENOUGH, Gate, by_best, by_mean, floor_of, gates, known, nears
from core.domain.errors import BadInput
from core.domain.outputs import Written
from core.domain.settings import Settings
from core.domain.types import RouteResult, Span
from core.evaluation import sets
from core.evaluation.answers import Given, correct
from core.evaluation.calibration import Acts
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import RUNS, Evaluation
from core.evaluation.labels_file import survives
from core.evaluation.raft import quotes as quotes_of
from core.evaluation.spec import Spec
from core.evaluation.tuning.batch_run import MODELS
from core.evaluation.tuning.sweep_subject import results
from core.routes.declare import Route
from core.routes.registry import routes

Unit = Literal["question", "passage", "strip"]
UNLABELLED = "no labels on whether the corpus answers them"
NO_GRADE = "no grade is available"
NO_GOLD = "no gold answer to judge by"
NOT_TOLD = "the step does not record which passages it read"
BEST = "the best piece of each passage passes whatever the floor"
NO_QUOTE = "no quote is labelled"
RELEVANT = "it is labelled relevant"
GRADED = frozenset(("low", "high", "floor"))  # thresholds on scores that need no model
DECIDED = frozenset((*GRADED, "threshold"))


@dataclass(frozen=True, slots=True)
class Judged:
    """One score of one question, and whether what the threshold asks for is there."""

    question: str
    score: float
    positive: bool


@dataclass(slots=True)
class Target:
    """A threshold of a step of a route, and the cases that show its effect.

    `name` is the input of the step that it is, as parameters tune it; `unit` is what is scored. The step acts
    on a score `from` the threshold on or `below` it: `act` says what it does then, `positive` what makes that
    right for a score from the threshold on. `probability`: the scores claim to be one. `by_settings`: all
    routes alike have it from the setting `answer_evidence`. `stored` counts the thresholds that the results
    were made with; `span` is the step of one of them, to find the parameter.
    """

    route: str
    step: str
    name: str
    unit: Unit
    act: str
    positive: str = RELEVANT
    acts: Acts = "from"
    probability: bool = False
    by_settings: bool = False
    cases: list[Judged] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> how many of the unit
    stored: Counter[float] = field(default_factory=Counter)
    span: Span | None = None

    @property
    def key(self) -> str:
        """Return the key that identifies it among the thresholds of its route."""
        return f"{self.step}:{self.name}:{self.unit}"

    @property
    def shipped(self) -> float:
        """The threshold that most of the results were made with."""
        return max(self.stored, key=lambda one: (self.stored[one], -one))


@dataclass(frozen=True, slots=True)
class Found:
    """All thresholds met, and the steps that hold a score against one but cannot be judged: (route, step) ->
    why.
    """

    targets: tuple[Target, ...]
    unjudged: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A route's result for a question with its labels."""

    result: RouteResult
    question: Question
    labelled: LabelledSet
    quotes: Sequence[str]

    @property
    def known(self) -> bool:
        """Return whether the labels mark some passage as relevant, or the question as unanswerable."""
        return self.labelled.labelled(self.question.id) or self.question.answerable is False

    def relevant(self, id: str) -> bool:
        """Return whether a passage is labelled relevant; an unjudged passage is not."""
        return self.labelled.qrels.get(self.question.id, {}).get(id, 0) >= self.labelled.relevant_from

    def target(
        self,
        span: Span,
        name: str,
        threshold: float,
        judged: Iterable[tuple[float, bool]],
        left_out: Mapping[str, int],
        **about: Any,
    ) -> Target:
        """Return a threshold of a step with the cases of this question; `about` are further fields."""
        return Target(
            self.result.route,
            span.name,
            name,
            cases=[Judged(self.question.id, score, right) for score, right in judged],
            left_out=Counter({why: n for why, n in left_out.items() if n}),
            stored=Counter([threshold]),
            span=span,
            **about,
        )

    def single(
        self, span: Span, name: str, threshold: float, score: float | None, right: bool | str, **about: Any
    ) -> Target:
        """Return a threshold with one score a question; `right` is the reason if that is not known."""
        judged = [(score, right)] if isinstance(right, bool) and score is not None else []
        left_out = {} if judged else {right if isinstance(right, str) else NO_GRADE: 1}
        return self.target(span, name, threshold, judged, left_out, unit="question", **about)


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
    kept: dict[tuple[str, str], Target] = {}
    unjudged: dict[tuple[str, str], str] = {}
    for id, result in results:
        if id not in questions:
            continue
        asked = _Asked(result, questions[id], labelled, (quotes or {}).get(id, ()))
        every = (*_graded(asked), *_gated(asked, unjudged), *_floored(asked), *_stripped(asked))
        met: set[str] = set()
        for target in every:
            if target.key in met:
                continue
            met.add(target.key)
            first = kept.setdefault((result.route, target.key), target)
            if first is not target:
                first.cases += target.cases
                first.left_out.update(target.left_out)
                first.stored.update(target.stored)
    return Found(tuple(kept.values()), unjudged)


def _graded(asked: _Asked) -> Iterator[Target]:
    """Yield the grades of passages: the best of a question against two thresholds, or the mean of a round;
    and each passage's own grade against the upper one, which is enough to be trusted.
    """
    for step in gradings(asked.result):
        one = step.output
        values = [(grade.id, value) for grade in one.grades if (value := known(grade)) is not None]
        right = any(asked.relevant(grade.id) for grade in one.grades) if asked.known else UNLABELLED
        # The best or the mean of several grades does not claim to be the probability that one is right.
        single = partial(
            asked.single, step.span, positive="a passage labelled relevant is among those graded"
        )
        judged = by_mean(one)
        if judged is not None:
            act = "the route accepts the results"
            yield single("threshold", judged.threshold, judged.mean, right, act=act)
        elif by_best(one):
            best = max((value for _, value in values), default=None)
            yield single("high", one.high, best, right, act="the route trusts the results")
            yield single("low", one.low, best, right, act="the route discards the results", acts="below")
            yield asked.target(
                step.span,
                "high",
                one.high,
                [(value, asked.relevant(id)) for id, value in values] if asked.known else (),
                {NO_GRADE: len(one.grades) - len(values)} if asked.known else {UNLABELLED: len(one.grades)},
                unit="passage",
                act="a passage counts as relevant",
                probability=True,
            )


def _gated(asked: _Asked, unjudged: dict[tuple[str, str], str]) -> Iterator[Target]:
    """Yield the decisions by one score for which labels show which way was right."""
    for gate in gates(asked.result):
        truth = _truth(gate, asked)
        if truth is None:
            why = f"labels do not say when “{gate.ways[0]}” is right and when “{gate.ways[1]}”"
            unjudged[asked.result.route, gate.span.name] = why
            continue
        # What holds an answer back is a setting of all routes, unless a parameter of this one set it.
        everywhere = gate.ways == ENOUGH and gate.name == "threshold" and "threshold" not in gate.span.set_by
        yield asked.single(
            gate.span,
            gate.name,
            gate.threshold,
            gate.score,
            truth[1],
            act=f"the route decides “{gate.ways[0]}”",
            positive=truth[0],
            probability=True,
            by_settings=everywhere,
        )


def _truth(gate: Gate, asked: _Asked) -> tuple[str, bool | str] | None:
    """Return the condition for the first way, and whether it holds or why that is unknown, or None if labels
    never tell.
    """
    if gate.ways == ENOUGH:
        condition = "a passage labelled relevant is among those it read"
        if not asked.known:
            return condition, UNLABELLED
        # the passages are recorded by the answer it wrote, or by that of a step that contains it
        spans, span = {one.id: one for one in asked.result.spans}, gate.span
        while not (isinstance(span.output, Written) and span.output.shown):
            if span.parent not in spans:
                return condition, NOT_TOLD
            span = spans[span.parent]
        return condition, any(map(asked.relevant, span.output.shown))
    given = {link.span for link in gate.span.links}
    for one in asked.result.spans:
        if one.id in given and isinstance(one.output, Written) and one.output.unaided:
            gold = asked.question.answers
            right = correct(Given(one.output.text), gold, True) if gold else None
            return "the answer given without a search is right", NO_GOLD if right is None else right
    return None


def _floored(asked: _Asked) -> Iterator[Target]:
    """Yield the floors that dropped passages."""
    for near in nears(asked.result):
        cosines = near.output.cosines
        yield asked.target(
            near.span,
            "floor",
            near.output.floor or 0.0,
            [(score, asked.relevant(id)) for id, score in cosines.items()] if asked.known else (),
            {} if asked.known else {UNLABELLED: len(cosines)},
            unit="passage",
            act="a passage passes the filter",
        )


def _stripped(asked: _Asked) -> Iterator[Target]:
    """Yield the floors that dropped pieces of passages; one is right to keep if a labelled quote survives in
    it, or it is a part of one.
    """
    for one in strippings(asked.result):
        if (floor := floor_of(one.output)) is None:
            continue
        judged, best = [], 0
        for pieces in one.output.by_passage.values() if asked.quotes else ():
            highest = max((piece.score for piece in pieces if piece.score is not None), default=None)
            for piece in pieces:
                if piece.score is None or piece.score == highest:
                    best += 1
                else:
                    judged.append((piece.score, _of_quote(piece.text, asked.quotes)))
        yield asked.target(
            one.span,
            "floor",
            floor,
            judged,
            {BEST: best} if asked.quotes else {NO_QUOTE: len(one.output.sentences)},
            unit="strip",
            act="a piece passes the filter",
            positive="it contains a labelled quote or is part of one",
        )


def _of_quote(text: str, quotes: Sequence[str]) -> bool:
    plain = " ".join(text.split())
    whole = any(plain in " ".join(quote.split()) for quote in quotes) if plain else False
    return whole or survives(quotes, text)


def gathered(settings: Settings, evaluation: Evaluation) -> Found:
    """Return every threshold in the stored spans of an evaluation; none if it saved no runs."""
    if not (evaluation.folder / RUNS).is_file():
        return Found(())
    every = (pair for name in evaluation.routes for pair in results(evaluation, name).items())
    return found(every, evaluation.labelled, quoted(settings, evaluation.spec))


def quoted(settings: Settings, spec: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return the labelled quotes of an evaluation's questions, or {} if the set has none or is no longer
    there.
    """
    from core.corpus import catalogue

    if spec.get("labels"):
        return {}
    try:
        origin = catalogue.source(str(spec["corpus"]), settings=settings, known_only=True)
        asked = Spec.read({**spec, "corpus": origin.name, "split": spec.get("split") or "all", "mode": None})
        return quotes_of(sets.of_spec(asked, origin.path))
    except BadInput:
        return {}  # what cuts passages into pieces then says that no quote is labelled


def having(names: frozenset[str] = DECIDED) -> list[Route]:
    """Return the routes with a parameter for one of the thresholds `names`."""
    return [route for route in routes().values() if any(p.tunes in names for p in route.parameters)]


def batch_runnable() -> list[Route]:
    """Return the routes with a threshold that grade without a language model."""
    return [route for route in having(GRADED) if not MODELS & {*route.needed(route.settle({}))}]
