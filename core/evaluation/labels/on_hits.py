"""Grades given on the hits of a run, stored as labels of its question."""

from __future__ import annotations

from core.domain.errors import BadInput
from core.domain.types import Run
from core.evaluation.labels import desk as desks
from core.evaluation.labels import rows
from core.evaluation.labels.complaints import desk_of, found_by, new_question, question_of
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


def _set_of(labels: LabelStore, run: Run) -> str:
    """Return the first set over the run's corpus that has its question, else `default_name`."""
    for one in labels.sets():
        if one.corpus == run.corpus and run.query in rows.queries(labels, one.name):
            return one.name
    return default_name(run.corpus)
