"""Sets of labels in the store: made, read, judged, undone. Every judgement ever made is kept.

Each change is one transaction and on the disk on return, so that two people at one set lose nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from reprlib import repr as short

from core.domain import people
from core.domain.errors import BadInput, NotAllowed
from core.evaluation.dataset import Question
from core.evaluation.labels import rows
from core.evaluation.labels.types import Desk
from core.store import Store
from core.store.labels import GRADES, KINDS, MODEL, SOURCES, Judgement, LabelSet, Pooled, now
from core.store.run_annotations import MAX_TAG, clean_note

MAX_QUESTIONS = 10_000
MAX_QUESTION = 10_000  # characters
RELEVANT_FROM = 2  # background helps nDCG, but is not what a yes-or-no measure should call found
DEFAULT = "\n".join(
    ["Judge the passage on its text alone, not on what you know or where it appears."]
    + [f"{grade}: {meaning}." for grade, meaning in GRADES.items()]
    + ["If the text does not decide it, choose “Can't tell”."]
)


def sets(store: Store, *, deleted: bool = False) -> tuple[LabelSet, ...]:
    """Return the sets that are not deleted (or those that are), by name."""
    with store.labels() as labels:
        found = labels.sets(deleted=deleted)
    return tuple(sorted(found, key=lambda one: (one.name.casefold(), one.name)))


def create(
    store: Store,
    name: str,
    corpus: str,
    questions: Sequence[Question],
    *,
    guidelines: str = DEFAULT,
    relevant_from: int = RELEVANT_FROM,
) -> LabelSet:
    """Make a set of these questions, in their order; BadInput for what is not allowed or a name taken."""
    fresh = LabelSet(clean_name(name, "label set"), corpus, clean_note(guidelines), relevant_from, now())
    if relevant_from not in (1, 2, 3):
        raise BadInput(f"relevant_from={relevant_from!r}; a passage is relevant from grade 1, 2 or 3")
    people.require("edit")
    asked = clean_questions(questions)
    known = rows.documents(asked)
    store.change_labels(lambda labels: labels.create(fresh, known), deed=("label set made", fresh.name))
    return fresh


def set_guidelines(store: Store, name: str, guidelines: str) -> None:
    """Give annotators other guidelines; BadInput if there is no such set, or the text is too long."""
    people.require("edit")
    told = clean_note(guidelines)
    store.change_labels(lambda labels: labels.set_guidelines(name, told), deed=("guidelines changed", name))


def delete(store: Store, name: str) -> None:
    """Take a set off the list, with nothing of it lost; `undelete` brings it back."""
    people.require_own(store.maker("label set made", name))
    store.change_labels(lambda labels: labels.set_deleted(name, True), deed=("label set deleted", name))


def undelete(store: Store, name: str) -> None:
    """Restore a deleted set."""
    people.require_own(store.maker("label set made", name))
    store.change_labels(lambda labels: labels.set_deleted(name, False), deed=("label set restored", name))


def load(store: Store, name: str) -> Desk:
    """Everything of a set, as it is at one moment; BadInput lists the sets there are."""
    with store.labels() as labels:
        return rows.read(labels, name)


def judge(store: Store, name: str, judgement: Judgement) -> int:
    """Keep a judgement, its `created` set if empty; the number it was given. On the disk on return.

    BadInput for a grade, kind, source or annotator that is not allowed, and for a passage that was not found
    for the question.
    """
    return judge_all(store, name, [judgement])[0]


def judge_all(store: Store, name: str, judgements: Sequence[Judgement]) -> list[int]:
    """Keep several judgements, all or none; see `judge`."""
    checked = [clean(one) for one in judgements]
    who = people.require("label")
    for one in checked:
        if one.source != "model":
            check_own(one.annotator)
        if one.source == "adjudication":
            people.require("edit")
        if who.account and one.created:
            raise NotAllowed(f"{who.account} cannot set when a judgement was made: it is made now")
    return store.change_labels(lambda labels: labels.judge(name, checked))


def undo(store: Store, name: str, annotator: str) -> Judgement | None:
    """Take back what the annotator said last in this set and is not taken back yet; None if nothing is left.

    What held before holds again. Judgements put off and "cannot tell" are taken back as grades are.
    """
    who = clean_name(annotator, "annotator")
    check_own(who)
    return store.change_labels(lambda labels: labels.take_back(name, who))


def version(store: Store, name: str) -> tuple[str, str, int, int, int, int, int]:
    """Return a version that stays equal until any process changes the set: the guidelines, its creation time,
    the number of its newest judgement, and two numbers each that change with its pool and with its questions.
    Raises BadInput if the set does not exist.
    """
    with store.labels() as labels:
        return labels.version(name)


def add_to_pool(store: Store, name: str, found: Mapping[str, Iterable[Pooled]]) -> int:
    """Add passages to what is to be judged of each question; how many are new. On the disk on return.

    A passage that is there keeps its text and the rank a route first gave it; routes that are new are added.
    BadInput for a question that is not of the set.
    """
    people.require("edit")
    return store.change_labels(lambda labels: labels.add_to_pool(name, found))


def clean(judgement: Judgement) -> Judgement:
    """Return the judgement with a trimmed annotator. Raises BadInput for what is not allowed."""
    who = clean_name(judgement.annotator, "annotator")
    if judgement.source not in SOURCES:
        raise BadInput(f"source {short(judgement.source)}; give {', '.join(SOURCES)}")
    if judgement.kind not in KINDS:
        raise BadInput(f"kind {short(judgement.kind)}; give {', '.join(KINDS)}")
    if judgement.kind == "grade" and (type(judgement.grade) is not int or judgement.grade not in GRADES):
        raise BadInput(f"grade {short(judgement.grade)}; give {', '.join(map(str, sorted(GRADES)))}")
    if judgement.kind != "grade" and judgement.grade is not None:
        raise BadInput(f"grade {short(judgement.grade)} with kind {judgement.kind!r}; only 'grade' has one")
    if (judgement.source == "model") != who.startswith(MODEL):
        raise BadInput(
            f"annotator {short(who)} with source {judgement.source!r}: names of models begin with "
            f"{MODEL!r}, and no others"
        )
    return replace(judgement, annotator=who, note=clean_note(judgement.note))


def clean_name(name: str, what: str) -> str:
    """Return the name trimmed. Raises BadInput unless it has 1 to 64 characters."""
    trimmed = " ".join(name.split()) if isinstance(name, str) else ""
    if not 1 <= len(trimmed) <= MAX_TAG:
        raise BadInput(f"{what} {short(name)}: give a name of 1 to {MAX_TAG} characters")
    return trimmed


def clean_questions(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions. Raises BadInput for none, too many, a blank or overlong one, or two of one id."""
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise BadInput(f"{len(questions)} questions; a label set has 1 to {MAX_QUESTIONS:,}")
    for question in questions:
        if not question.id or not question.query.text.strip() or len(question.query.text) > MAX_QUESTION:
            raise BadInput(
                f"question {short(question.id)}: give an id, and a text of 1 to {MAX_QUESTION:,} characters"
            )
    id, count = Counter(question.id for question in questions).most_common(1)[0]
    if count > 1:
        raise BadInput(f"the id {short(id)} belongs to {count} questions; give each its own")
    return tuple(questions)


def check_own(annotator: str) -> None:
    """Raise NotAllowed if the current person may not label, or labels under another account."""
    who = people.require("label")
    if who.account and annotator != who.account:
        raise NotAllowed(f"{who.account} cannot label as {short(annotator)}: labels are their account's")
