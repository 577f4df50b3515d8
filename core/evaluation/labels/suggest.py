"""Grades that the language model suggests: stored apart from people's, and never counted as theirs."""

from __future__ import annotations

from collections.abc import Collection

from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import Cancelled, RouteScopeError, Unavailable, describe
from core.engine.engine import Engine
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.pool import store_of
from core.store import Store
from core.store.labels import MODEL, Judgement, Pair
from core.store.run_annotations import MAX_TAG

BOUNDS = (0.25, 0.5, 0.75)  # of P(Yes), from which the grade is 1, 2 and 3: even, and relevant from one half
NAMED = 20  # reasons kept of those why something is not scored


class Suggesting(BackgroundJob):
    """The model grades passages of a set, one after the other, in a thread of its own; each suggestion is
    kept when it was made. `scored` of them were; `unscored` got none (`why`: the first reasons), as the
    model failed or its answer was not to be read: nothing is kept of those, and they can be asked again.
    """

    kind = "suggestions"

    def __init__(self, engine: Engine, store: Store, desk: Desk, pairs: Collection[Pair]) -> None:
        super().__init__(desk.set.name, len(pairs), engine.settings.home)
        self.name, self.corpus, self.annotator = desk.set.name, desk.set.corpus, annotator(engine)
        self.scored = self.unscored = 0
        self.why: dict[Pair, str] = {}
        self._engine, self._store, self._desk, self._pairs = engine, store, desk, tuple(pairs)

    def _do(self) -> None:
        for question, passage in self._pairs:
            if self._cancel.is_set():
                break
            self._suggest(question, passage)
            self.finished = self.scored + self.unscored

    def _suggest(self, question: str, passage: str) -> None:
        try:
            # as routes do it, with limits of its own for each passage
            do = self._engine.steps(self._engine.corpus(self.corpus), self._cancel)
            with do.context.asker.asking():
                text = self._desk.asked[question].query.text
                given = do.grade(text, self._desk.pool[question][passage].passage)
            value, why = given.grade, given.why
        except Cancelled:
            raise
        except RouteScopeError as error:
            value, why = None, describe(error)
        if value is None:
            self.unscored += 1
            if len(self.why) < NAMED:
                self.why[question, passage] = why
            return
        note = f"P(Yes) {value:.2f} that the passage states the answer"
        said = Judgement(question, passage, self.annotator, "model", "grade", graded(value), note)
        desks.judge(self._store, self.name, said)
        self.scored += 1


def begin(engine: Engine, name: str, pairs: Collection[Pair] | None = None) -> Suggesting:
    """Begin to have the model grade passages of a set, or return the running job. Without `pairs`: every
    passage of the pool without a suggestion from it. Raises BadInput for an unknown set, Unavailable if there
    is no model.
    """
    store = store_of(engine)
    desk = desks.load(store, name)
    if why := engine.llm().status():
        raise Unavailable(f"the model cannot suggest grades: {why}")
    chosen = missing(desk, annotator(engine)) if pairs is None else pairs
    key = str(store.path), desk.set.name
    return jobs.begin(Suggesting, key, lambda: Suggesting(engine, store, desk, chosen))


def under_way(engine: Engine, name: str) -> Suggesting | None:
    """Return the last job that this process began for a set."""
    return jobs.latest(Suggesting, (str(store_of(engine).path), name))


def missing(desk: Desk, model: str) -> list[Pair]:
    """Return the passages of which the model, by its name as an annotator, has suggested nothing."""
    known = desk.by(model)
    return [pair for pair in desk.pairs if pair not in known]


def annotator(engine: Engine) -> str:
    """Return the name under which the model's suggestions are stored."""
    return f"{MODEL}{' '.join(engine.llm().model.split())}"[:MAX_TAG]


def graded(value: float) -> int:
    """Return the grade for the probability, 0 to 1, that a passage states the answer."""
    return sum(value >= bound for bound in BOUNDS)
