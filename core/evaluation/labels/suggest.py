"""Grades and nuggets that the language model suggests: apart from people's, and never counted as theirs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Literal

from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import Cancelled, RouteScopeError, Unavailable, describe
from core.domain.types import Hit
from core.engine.engine import Engine
from core.evaluation.dataset import Nugget, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final
from core.evaluation.labels.pool import store_of
from core.steps import Steps
from core.store import Store
from core.store.labels import MODEL, Judgement, Pair
from core.store.run_annotations import MAX_TAG

BOUNDS = (0.25, 0.5, 0.75)  # of P(Yes), from which the grade is 1, 2 and 3: even, and relevant from one half
NAMED = 20  # reasons kept of those why something is not scored
SHOWN = 5  # relevant passages that nuggets are proposed from
What = Literal["grades", "nuggets"]


class Suggesting(BackgroundJob):
    """The model grades passages of a set, or proposes nuggets for questions (pairs without a passage), one
    after the other, in a thread of its own; each suggestion is kept when it was made. `scored` pairs have
    one; `unscored` got none (`why`: the first reasons), as the model failed or its answer was not to be read:
    nothing is kept of those, and they can be asked again.
    """

    kind = "suggestions"

    def __init__(
        self, engine: Engine, store: Store, desk: Desk, pairs: Collection[Pair], what: What = "grades"
    ) -> None:
        super().__init__(desk.set.name, len(pairs), engine.settings.home)
        self.name, self.corpus, self.annotator = desk.set.name, desk.set.corpus, annotator(engine)
        self.scored = self.unscored = 0
        self.why: dict[Pair, str] = {}
        self._engine, self._store, self._desk, self._pairs = engine, store, desk, tuple(pairs)
        self._suggest: Callable[[Steps, Pair], str] = self._grade if what == "grades" else self._propose

    def _do(self) -> None:
        for pair in self._pairs:
            if self._cancel.is_set():
                break
            try:
                # as routes do it, with limits of its own for each
                do = self._engine.steps(self._engine.corpus(self.corpus), self._cancel)
                with do.context.asker.asking():
                    why = self._suggest(do, pair)
            except Cancelled:
                raise
            except RouteScopeError as error:
                why = describe(error)
            if why:
                self.unscored += 1
                if len(self.why) < NAMED:
                    self.why[pair] = why
            else:
                self.scored += 1
            self.finished = self.scored + self.unscored

    def _grade(self, do: Steps, pair: Pair) -> str:
        """Grade a passage; return why there is no grade."""
        question, passage = pair
        given = do.grade(self._desk.asked[question].query.text, self._desk.pool[question][passage].passage)
        if given.grade is None:
            return given.why
        note = f"P(Yes) {given.grade:.2f} that the passage states the answer"
        said = Judgement(question, passage, self.annotator, "model", "grade", graded(given.grade), note)
        desks.judge(self._store, self.name, said)
        return ""

    def _propose(self, do: Steps, pair: Pair) -> str:
        """Propose nuggets for a question without any, from its reference answer and relevant passages;
        return why the model proposed nothing, or "".
        """
        question, at = self._desk.asked[pair[0]], self._desk.set.relevant_from
        graded = [one for one in final(self._desk).values() if one.question == question.id]
        best = sorted((one for one in graded if (one.grade or 0) >= at), key=lambda one: -(one.grade or 0))
        hits = tuple(Hit(self._desk.pool[question.id][one.passage].passage, 1.0) for one in best[:SHOWN])
        answer = question.answer or next(iter(question.answers), "")
        if not hits and not answer:
            return "it has neither a reference answer nor a relevant passage"
        found = do.propose_nuggets(question.query.text, hits, answer)
        texts = {" ".join(one.split()): one in found.vital for one in (*found.vital, *found.okay)}
        fresh = tuple(Nugget(text, vital, self.annotator) for text, vital in texts.items() if text)

        def change(now: Question) -> Question:
            return now if now.nuggets else replace(now, nuggets=fresh)  # a person wrote some meanwhile

        desks.change_question(self._store, self.name, question.id, change)
        return "" if fresh else "the model named no fact"


def begin(
    engine: Engine, name: str, pairs: Collection[Pair] | None = None, what: What = "grades"
) -> Suggesting:
    """Begin to have the model suggest for pairs of a set, or return the running job. Without `pairs`: all
    without a suggestion. Raises BadInput for an unknown set, Unavailable if there is no model.
    """
    store = store_of(engine)
    desk = desks.load(store, name)
    if why := engine.llm().status():
        raise Unavailable(f"the model cannot suggest {what}: {why}")
    chosen = missing(desk, annotator(engine), what) if pairs is None else pairs
    key = str(store.path), desk.set.name, what
    return jobs.begin(Suggesting, key, lambda: Suggesting(engine, store, desk, chosen, what))


def under_way(engine: Engine, name: str, what: What = "grades") -> Suggesting | None:
    """Return the last job that this process began for a set."""
    return jobs.latest(Suggesting, (str(store_of(engine).path), name, what))


def missing(desk: Desk, model: str, what: What = "grades") -> list[Pair]:
    """Return the passages of which the model, by its name as an annotator, has suggested nothing, or the
    questions without nuggets.
    """
    if what == "nuggets":
        return [(one.id, "") for one in desk.questions if not one.nuggets and one.answerable is not False]
    known = desk.by(model)
    return [pair for pair in desk.pairs if pair not in known]


def annotator(engine: Engine) -> str:
    """Return the name under which the model's suggestions are stored."""
    return f"{MODEL}{' '.join(engine.llm().model.split())}"[:MAX_TAG]


def graded(value: float) -> int:
    """Return the grade for the probability, 0 to 1, that a passage states the answer."""
    return sum(value >= bound for bound in BOUNDS)
