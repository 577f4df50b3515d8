"""Generated questions in a label set: written in the background, put in with their labels, and accepted,
changed and dropped by people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.corpus.corpus import Corpus
from core.corpus.source import slug
from core.domain import people
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Query
from core.evaluation import dataset, sets
from core.evaluation.dataset import STATES, Question, State
from core.evaluation.labels import desk as desks
from core.evaluation.questions.generate import Generated, Kind, generate
from core.evaluation.questions.question_file import Line, Overtaken, read, reviewed
from core.store import Store
from core.store.labels import Judgement, LabelSet, LabelStore, Pooled, now

if TYPE_CHECKING:
    from core.engine.engine import Engine

FOLDER = "questions"  # in the home: a file for each label set, so that nothing is written twice
BY = "generated"  # the annotator of labels that came with generated questions


def add(store: Store, name: str, corpus: Corpus, lines: Sequence[Line]) -> int:
    """Add generated questions to the label set `name`, created if it does not exist, with their passages as
    labels by BY; return how many were new. One transaction; an existing question is not changed. Raises
    BadInput for a set over another corpus, or a document or quote that the corpus does not have.
    """
    lines = [line for line in lines if line["generated"].get("state") != "dropped"]
    if not lines:
        return 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "generated.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        labelled, _ = sets.tie(dataset.written([path], name=name), corpus)
    known = corpus.by_ids(sorted({id for grades in labelled.qrels.values() for id in grades}))
    fresh = LabelSet(
        desks.clean_name(name, "label set"), corpus.name, desks.DEFAULT, desks.RELEVANT_FROM, now()
    )

    people.require("edit")

    def work(labels: LabelStore) -> int:
        desk = desks.existing(labels, fresh.name, corpus.name, dropped=True)
        there = desk.asked if desk else {}
        new = [question for question in labelled.questions if question.id not in there]
        desks.clean_questions([*there.values(), *new])
        if not there and new:
            labels.create(fresh, [*map(desks.document, new)])
        for question in new if there else ():
            labels.keep_question(fresh.name, desks.document(question))
        for question in new:
            grades = labelled.qrels.get(question.id, {})
            labels.add_to_pool(fresh.name, {question.id: [Pooled(known[id]) for id in grades]})
            labels.judge(
                fresh.name,
                [
                    desks.clean(Judgement(question.id, id, BY, "import", "grade", grade))
                    for id, grade in grades.items()
                ],
            )
        return len(new)

    return store.change_labels(work)


def questions(store: Store, name: str) -> tuple[Question, ...]:
    """Return the generated questions of a set, dropped ones too. Raises BadInput if there is no such set."""
    with store.labels() as labels:
        every = desks.read(labels, name, dropped=True).questions
    return tuple(question for question in every if question.generated is not None)


def decide(store: Store, name: str, seen: Question, state: State, who: str, text: str = "") -> Question:
    """Accept or drop the question `seen`, or put it back ("proposed"), with another `text` if one is given;
    the question as it is now. BadInput for what is not allowed, Overtaken where it is not as seen.
    """
    if state not in STATES or seen.generated is None:
        raise BadInput(f"state {state!r} of {seen.id!r}; give {', '.join(STATES)} of a generated question")
    desks.check_own(desks.clean_name(who, "annotator"))
    line: Line = {"id": seen.id, "text": seen.query.text, "generated": asdict(seen.generated)}
    line = reviewed(line, state, desks.clean_name(who, "annotator"), " ".join(text.split()))
    made = dataset.Generated.read(line["generated"], seen.id)
    now = replace(seen, query=Query(line["text"], seen.query.history), generated=made)
    desks.clean_questions([now])

    def change(current: Question) -> Question:
        if current != seen:
            other = current.generated.reviewer if current.generated else ""
            raise Overtaken(f"{other or 'Somebody'} has changed this question meanwhile: see it now", current)
        return now

    return desks.change_question(store, name, seen.id, change)


class Generating(BackgroundJob):
    """Writes questions about a corpus into the label set `name`; each is there as soon as it is kept."""

    kind = "questions"

    def __init__(
        self, engine: Engine, store: Store, name: str, corpus: str, count: int, kinds: Sequence[Kind]
    ) -> None:
        super().__init__(name, count, engine.settings.home)
        self.name, self.corpus = name, corpus
        self.found: Generated | None = None
        self._engine, self._store, self._kinds = engine, store, tuple(kinds)
        self._file = engine.settings.home / FOLDER / f"{slug(name)}.jsonl"

    def _do(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self.found = generate(
            self._engine,
            self.corpus,
            self._file,
            self.total,
            kinds=self._kinds,
            progress=self._follow,
            cancel=self._cancel,
        )
        self._put()

    def _follow(self, done: int, _of: int) -> None:
        if done > self.finished:
            self.finished = done
            self._put()

    def _put(self) -> None:
        if lines := read(self._file):
            add(self._store, self.name, self._engine.corpus(self.corpus), lines)


def begin(engine: Engine, name: str, corpus: str, count: int, kinds: Sequence[Kind]) -> Generating:
    """Begin to generate until there are `count` questions, or return the running job. Raises Unavailable if
    there is no model or no store.
    """
    store = engine.store
    if store is None:
        raise Unavailable("label sets are not stored here")
    if why := engine.llm().status():
        raise Unavailable(f"questions are written by the language model: {why}")
    made = Generating(engine, store, name, corpus, count, kinds)
    return jobs.begin(Generating, (engine.settings.home, name), lambda: made)


def latest(engine: Engine, name: str) -> Generating | None:
    """Return the last job that this process began for a set."""
    return jobs.latest(Generating, (engine.settings.home, name))
