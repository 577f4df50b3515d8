"""Questions that people complained of, asked of the route to ship, or read from an evaluation of them: which
broke again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import AnswerStyle
from core.evaluation import experiment_store
from core.evaluation.answers import Given, correct
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count, listed
from core.evaluation.gold import DEPTH
from core.evaluation.outcome import Outcome
from core.evaluation.release.measured import Measured, find_evaluation

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.engine.engine import Engine

State = Literal["passed", "broken", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Regression:
    """One question of a regression set with one route: `state`, and the reason in `why`. `failures` are the
    reported kinds of failure, `who` reported them. `wanted` are the passages that should be among the first
    `depth`. `rank` is the best rank of a wanted passage, from 1, None if no hit is a wanted passage. `run` is
    the id of the run, "" if no run was stored.
    """

    question: str
    text: str
    state: State
    why: str
    failures: tuple[str, ...] = ()
    who: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    rank: int | None = None
    run: str = ""

    def in_words(self) -> str:
        """Return the question, what is wrong, and who reported it as what."""
        reported = ""
        if self.failures:
            reported = f" (reported as {listed(self.failures)} by {listed(self.who)})"
        return f"{self.question} “{self.text[:120]}”: {self.why}{reported}"


@dataclass(frozen=True, slots=True)
class Regressions:
    """Every question of the set `name` with `route`, in their order; `source` is an evaluation's name, or ""
    where the route was asked now.
    """

    name: str
    route: str
    depth: int
    results: tuple[Regression, ...]
    source: str = ""

    def of(self, state: State) -> tuple[Regression, ...]:
        """Return the regressions in a state."""
        return tuple(one for one in self.results if one.state == state)

    @property
    def broken(self) -> tuple[Regression, ...]:
        """Return the regressions that broke again."""
        return self.of("broken")

    def headline(self, title: str) -> str:
        """Return a sentence on how many questions passed; `title` is the route's."""
        open_ = len(self.of("cannot be told"))
        rest = f"; {open_} cannot be determined" if open_ else ""
        return (
            f"Regression set {self.name}: {title} passes {len(self.of('passed'))} of "
            f"{count(len(self.results))}, {len(self.broken)} broke again{rest}."
        )


def regressed(
    engine: Engine,
    given: str,
    measured: Measured,
    route: str,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    ended: Callable[[], bool] = lambda: False,
) -> Regressions:
    """Return the regressions of a route, the one to ship or the nearest.

    `given` is a label set, whose questions are asked now with the parameters of the evaluation, and with
    answers where it has answers; or the folder or name of an evaluation of one. BadInput for what is neither.
    """
    from core.evaluation.labels import desk as desks

    known = [one.name for one in desks.sets(engine.store)] if engine.store is not None else []
    if given in known and not Path(given).is_dir():
        answering = measured.figures.answering
        return ask(
            engine,
            given,
            route,
            measured.parameters(route),
            style=AnswerStyle(**answering) if answering else None,
            corpus=measured.figures.corpus or None,
            progress=progress,
            ended=ended,
        )
    saved = experiment_store.names(engine.settings)
    if given in saved or Path(given).is_dir():
        return of_evaluation(find_evaluation(engine.settings, given), route)
    raise BadInput(
        f"there are no regressions {given!r}: give a label set ({', '.join(known[:20]) or 'none'}), or an "
        f"evaluation of one ({', '.join(saved[:20]) or 'none'})"
    )


def newest(settings: Settings, name: str, route: str) -> Evaluation | None:
    """Return the saved evaluation of a regression set in which a route was asked last, or None if it does not
    exist.
    """
    for saved in experiment_store.names(settings):
        folder = experiment_store.place(settings, saved)
        try:
            document = json.loads((folder / experiment_store.LABELLED).read_text(encoding="utf-8"))
            if document["spec"].get("labels") != name:
                continue
            opened = experiment_store.opened(folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BadInput):
            continue  # damaged: the list of evaluations reports it
        if route in opened.routes and opened.outcomes:
            return opened
    return None


def of_evaluation(evaluation: Evaluation, route: str, depth: int = DEPTH) -> Regressions:
    """Return the regressions of a route from an evaluation of their set. Raises BadInput if the route is not
    in it, or no question was asked.
    """
    if route not in evaluation.routes:
        raise BadInput(
            f"evaluation {evaluation.name} of the regressions has no route {route!r}; it has: "
            f"{', '.join(evaluation.routes)}"
        )
    labelled, name = evaluation.labelled, str(evaluation.spec.get("labels") or evaluation.labelled.name)
    asked = [question for question in labelled.questions if question.id in evaluation.outcomes]
    if not asked:
        raise BadInput(f"evaluation {evaluation.name} of the regressions asked no question yet; resume it")
    results = tuple(
        checked(question, evaluation.outcomes[question.id].get(route), labelled, depth) for question in asked
    )
    return Regressions(name, route, depth, results, evaluation.name)


def ask(
    engine: Engine,
    name: str,
    route: str,
    parameters: Mapping[str, Any],
    *,
    style: AnswerStyle | None = None,
    depth: int = DEPTH,
    corpus: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    ended: Callable[[], bool] = lambda: False,
) -> Regressions:
    """Ask a route each question of the label set `name` now, with answers if `style` is given. Raises
    BadInput for a set that does not exist, is over another corpus than `corpus`, or whose corpus is gone;
    Unavailable if the route cannot run. If `ended` stops it, questions that were not asked count as
    undetermined.
    """
    from core.evaluation.labels import desk as desks
    from core.evaluation.labels.final import final, tie
    from core.evaluation.labels.pool import store_of
    from core.evaluation.runner import Plan, run

    store = store_of(engine)
    desk = desks.load(store, name)
    over = desk.set.corpus
    if corpus not in (None, over):
        raise BadInput(f"regression set {name!r} is over corpus {over}, and the evaluation over {corpus}")
    try:
        opened = engine.corpus(over)
    except RouteScopeError as error:
        raise BadInput(
            f"regression set {name!r} is over corpus {over}, which cannot be opened: {error}"
        ) from None
    tied = tie(desk, final(desk), opened)
    labelled = LabelledSet(desk.set.name, desk.questions, tied.qrels, desk.set.relevant_from)
    plan = Plan(over, (route,), {route: dict(parameters)}, style=style)
    outcomes, _ = run(engine, labelled, plan, progress=progress, ended=ended)
    found = [(question, outcomes.get(question.id, {}).get(route)) for question in labelled.questions]
    return Regressions(name, route, depth, tuple(checked(*one, labelled, depth) for one in found))


def checked(
    question: Question, outcome: Outcome | None, labelled: LabelledSet, depth: int = DEPTH
) -> Regression:
    """Check one question: its wanted passages are among the first `depth`, and its answer, if written, is
    right. A failed route broke the question. Without anything to check, the result is undetermined.
    """
    grades = labelled.qrels.get(question.id, {})
    relevant = [id for id, grade in grades.items() if grade >= labelled.relevant_from]
    named = [one.passage for one in question.complaints if one.passage]
    wanted = tuple(dict.fromkeys(id for id in named if id in relevant))
    places = {id: at for at, (id, _) in enumerate(outcome.hits, 1)} if outcome else {}
    ranks = [places[id] for id in wanted or relevant if id in places]
    # Each passage that somebody named; of labels that followed their words to other passages any one.
    missing = [id for id in wanted if places.get(id, depth + 1) > depth]
    if not wanted and min(ranks, default=depth + 1) > depth:
        missing = relevant[:1]

    def judged() -> tuple[State, str]:
        if outcome is None:
            return "cannot be told", "it was not asked"
        if outcome.status != "ok":
            return "broken", f"the route {outcome.status}" + (f": {outcome.error}" if outcome.error else "")
        for id in missing[:1]:
            where = f"is at rank {places[id]}" if id in places else "is not found"
            return "broken", f"{id} {where}, wanted in the first {depth}"
        if named and not relevant:
            return "cannot be told", "the corpus no longer has the passage that should be found"
        told = [f"its passage is in the first {depth}"] if relevant else []
        right = _answered(question, outcome)
        if right is False:
            if question.answerable is False:
                return "broken", "it answered where it should have abstained"
            if outcome.abstained:
                return "broken", "it abstained where there is an answer"
            return "broken", f"its answer does not hold the gold answer “{question.answers[0][:80]}”"
        if right:
            rightly = "it abstained, as it should" if outcome.abstained else "it answered, as it should"
            told.append("its answer is right" if question.answers else rightly)
        if told:
            return "passed", " and ".join(told)
        if question.answers or question.answerable is not None:
            return "cannot be told", "no answer was written to check"
        return "cannot be told", "no passage and no gold answer is given; add one on Label"

    state, why = judged()
    return Regression(
        question.id,
        question.query.text,
        state,
        why,
        tuple(dict.fromkeys(one.failure for one in question.complaints)),
        tuple(dict.fromkeys(one.who for one in question.complaints)),
        wanted or tuple(relevant),
        min(ranks, default=None),
        outcome.run if outcome else "",
    )


def _answered(question: Question, outcome: Outcome) -> bool | None:
    """Return whether the answer is right by its gold answers, or rightly withheld, or None if there is
    nothing to compare.
    """
    if outcome.answer is None:
        return None
    given = Given(outcome.answer, outcome.citations, outcome.abstained, outcome.wrong)
    if question.answerable is False:
        return outcome.abstained
    if question.answers:
        return correct(given, question.answers, question.answerable)
    return not outcome.abstained if question.answerable else None
