"""Generated questions in a label set: put in with their labels, accepted, changed and dropped by people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from core.corpus.corpus import Corpus
from core.domain import people
from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation import dataset, sets
from core.evaluation.dataset import STATES, Question, State
from core.evaluation.labels import desk as desks
from core.evaluation.labels import rows
from core.evaluation.questions.question_file import Line, reviewed
from core.store import Store
from core.store.labels import Judgement, LabelSet, LabelStore, Pooled, now

BY = "generated"  # the annotator of labels that came with generated questions


class ChangedMeanwhile(BadInput):
    """Somebody else has changed the question since it was shown; `now` is the question as it is."""

    def __init__(self, message: str, now: Question) -> None:
        super().__init__(message)
        self.now = now


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
        there = _questions(labels, fresh)
        new = [question for question in labelled.questions if question.id not in there]
        desks.clean_questions([*there.values(), *new])
        if not there and new:
            labels.create(fresh, rows.documents(new))
        for question in new if there else ():
            labels.keep_question(fresh.name, rows.document(question))
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
        every = rows.read(labels, name, dropped=True).questions
    return tuple(question for question in every if question.generated is not None)


def decide(store: Store, name: str, seen: Question, state: State, who: str, text: str = "") -> Question:
    """Accept or drop the question `seen`, or put it back ("proposed"), with another `text` if one is given;
    the question as it is now. BadInput for what is not allowed, ChangedMeanwhile where it is not as seen.
    """
    if state not in STATES or seen.generated is None:
        raise BadInput(
            f"state {state!r} of question {seen.id!r}; give {', '.join(STATES)} of a generated one"
        )
    desks.check_own(desks.clean_name(who, "annotator"))
    line = reviewed(_line(seen), state, desks.clean_name(who, "annotator"), " ".join(text.split()))
    made = dataset.Generated.read(line["generated"], seen.id)
    now = replace(seen, query=Query(line["text"], seen.query.history), generated=made)
    desks.clean_questions([now])

    def work(labels: LabelStore) -> Question:
        every = {one.id: one for one in rows.read(labels, name, dropped=True).questions}
        current = every.get(seen.id)
        if current is None:
            raise BadInput(f"label set {name} no longer has the question {seen.id!r}")
        if current != seen:
            other = current.generated.reviewer if current.generated else ""
            raise ChangedMeanwhile(
                f"{other or 'Somebody'} has changed this question meanwhile; it is shown as it is now",
                current,
            )
        labels.keep_question(name, rows.document(now))
        return now

    return store.change_labels(work)


def _questions(labels: LabelStore, fresh: LabelSet) -> Mapping[str, Question]:
    """Return the questions that are there by id, or {} if the set has to be made."""
    if not labels.exists(fresh.name):
        return {}
    desk = rows.read(labels, fresh.name, dropped=True)  # BadInput for a deleted one
    if desk.set.corpus != fresh.corpus:
        raise BadInput(
            f"label set {fresh.name} is over corpus {desk.set.corpus}, and these questions over"
            f" {fresh.corpus}; give another name"
        )
    return desk.asked


def _line(question: Question) -> Line:
    from dataclasses import asdict

    assert question.generated is not None
    made = {**asdict(question.generated), "passages": list(question.generated.passages)}
    return {"id": question.id, "text": question.query.text, "generated": made}
