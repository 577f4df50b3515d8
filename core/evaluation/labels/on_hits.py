"""Grades given on the hits of a run, stored as labels of its question."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.domain.errors import BadInput
from core.domain.types import Passage, Run
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import rows
from core.evaluation.labels.complaints import GRADE, MAX_ANSWER, desk_of, found_by, new_question, question_of
from core.store import Store
from core.store.labels import Judgement, LabelSet, LabelStore, Pooled, now
from core.store.run_annotations import MAX_TAG


def default_name(corpus: str) -> str:
    """Return the name of the set for questions that no label set of the corpus has."""
    return f"grades {corpus}"[:MAX_TAG]


def grade(store: Store, run: Run, passage: str, who: str, value: int) -> Judgement:
    """Store the grade 0 to 3 of a run's passage as a label by `who`, and return the judgement.

    If `who` gave this grade already, it is withdrawn, so that the grade before it counts again. The label
    goes into the first set of the corpus with this question, else into `default_name`, which is created.
    Raises BadInput for another grade or a passage that is not in the run, NotAllowed without the right to
    label.
    """
    if passage not in run.passages:
        raise BadInput(f"run {run.id} has no passage {passage!r}")
    desks.check_own(who)
    found = Pooled(run.passages[passage], found_by(run, passage))

    def work(labels: LabelStore) -> Judgement:
        name = _set_of(labels, run)
        fresh = LabelSet(name, run.corpus, desks.DEFAULT, desks.RELEVANT_FROM, now())
        desk = desk_of(labels, fresh)
        known = question_of(desk, run.query) if desk else None
        question = known or new_question(desk, run.query)
        told = desks.clean(Judgement(question.id, passage, who, "person", "grade", value))
        desks.clean_questions([question])
        if desk is None:
            labels.create(fresh, rows.documents([question]))
        elif known is None:
            labels.keep_question(name, rows.document(question))
        standing = desk.by(told.annotator).get(told.pair) if desk else None
        if standing is not None and standing.grade == value:
            told = Judgement(question.id, passage, told.annotator, "person", "withdrawn")
        labels.add_to_pool(name, {question.id: [found]})
        labels.judge(name, [told])
        return told

    return store.change_labels(work, deed=("hit graded", run.id))


@dataclass(frozen=True, slots=True)
class Marked:
    """A passage graded, or an answer accepted, for a question of the label set `set`. `before` is the
    question as it was, None if it is new.
    """

    set: str
    question: str
    who: str
    passage: str
    answer: str
    before: Question | None


def mark(store: Store, run: Run, who: str, *, passage: Passage | None = None, answer: str = "") -> Marked:
    """Grade any passage of the corpus as answering a run's question, or accept an answer as right, in the
    set that `grade` takes. Raises NotAllowed without the right to label.
    """
    desks.check_own(who)
    answer = " ".join(answer.split())[:MAX_ANSWER]

    def work(labels: LabelStore) -> Marked:
        name = _set_of(labels, run)
        fresh = LabelSet(name, run.corpus, desks.DEFAULT, desks.RELEVANT_FROM, now())
        desk = desk_of(labels, fresh)
        before = question_of(desk, run.query) if desk else None
        question = before or new_question(desk, run.query)
        if answer:
            answers = tuple(dict.fromkeys((*question.answers, answer)))
            question = replace(question, answers=answers, answer=question.answer or answer, answerable=True)
        if desk is None:
            labels.create(fresh, rows.documents([question]))
        elif question != before:
            labels.keep_question(name, rows.document(question))
        if passage is not None:
            labels.add_to_pool(name, {question.id: [Pooled(passage, found_by(run, passage.id))]})
            given = desks.clean(Judgement(question.id, passage.id, who, "person", "grade", GRADE))
            labels.judge(name, [given])
        return Marked(name, question.id, who, passage.id if passage else "", answer, before)

    return store.change_labels(work, deed=("question labelled", run.id))


def unmark(store: Store, marked: Marked) -> None:
    """Take back what `mark` stored; a question that it added goes if nobody else judged it."""
    desks.check_own(marked.who)

    def work(labels: LabelStore) -> None:
        desk = rows.read(labels, marked.set)
        known = desk.asked.get(marked.question)
        if known is None:
            raise BadInput(f"the question is no longer in {marked.set}")
        own = marked.who, marked.passage
        said = [one for one in desk.current() if one.question == marked.question]
        others = [one for one in said if (one.annotator, one.passage) != own]
        left = tuple(one for one in known.answers if one != marked.answer)
        if marked.before is None and not others and not left and not known.complaints:
            labels.drop_question(marked.set, marked.question)
            return
        if marked.answer and (marked.before is None or marked.answer not in marked.before.answers):
            answerable = known.answerable if left else marked.before.answerable if marked.before else None
            less = replace(known, answers=left, answer=next(iter(left), None), answerable=answerable)
            labels.keep_question(marked.set, rows.document(less))
        if marked.passage:
            back = Judgement(marked.question, marked.passage, marked.who, "person", "withdrawn")
            labels.judge(marked.set, [back])

    store.change_labels(work)


def _set_of(labels: LabelStore, run: Run) -> str:
    """Return the first set over the run's corpus that has its question, else `default_name`."""
    for one in labels.sets():
        if one.corpus == run.corpus and run.query in rows.queries(labels, one.name):
            return one.name
    return default_name(run.corpus)
