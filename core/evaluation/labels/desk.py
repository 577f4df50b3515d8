"""Label sets: read, created, judged, undone. Every judgement ever made is kept.

Each change is one transaction and on the disk on return, so that two people at one set lose nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from reprlib import repr as short
from typing import Any

from core.domain import people
from core.domain.conversation import turns
from core.domain.errors import BadInput, NotAllowed
from core.domain.types import Query
from core.evaluation.dataset import Complaint, Drawn, Generated, Nugget, Question
from core.store import Store
from core.store.labels import (
    GRADES,
    KINDS,
    MODEL,
    PREFERENCES,
    SOURCES,
    Judgement,
    LabelSet,
    LabelStore,
    Pair,
    Pooled,
    Stored,
    now,
    standing,
)
from core.store.run_annotations import MAX_TAG, clean_note

MAX_QUESTIONS = 10_000
MAX_QUESTION = 10_000  # characters
RELEVANT_FROM = 2  # background helps nDCG, but is not what a yes-or-no measure should call found
DEFAULT = "\n".join(
    ["Judge the passage on its text alone, not on what you know or where it appears."]
    + [f"{grade}: {meaning}." for grade, meaning in GRADES.items()]
    + ["If the text does not decide it, choose “Can't tell”."]
)


@dataclass(frozen=True)
class Desk:
    """A whole label set. `pool`: question id -> passage id -> passage; `judgements`: all ever made, oldest
    first.
    """

    set: LabelSet
    questions: tuple[Question, ...]
    pool: Mapping[str, Mapping[str, Pooled]]
    judgements: tuple[Judgement, ...] = ()

    @cached_property
    def held(self) -> tuple[Judgement, ...]:
        """Return the newest judgement per question, passage (or two routes) and annotator that was not taken
        back, oldest first. Adjudications are among them, next to their annotator's own.
        """
        stacks = standing(self.judgements)
        return tuple(sorted((stack[-1] for stack in stacks.values() if stack), key=lambda j: j.number))

    @cached_property
    def current(self) -> tuple[Judgement, ...]:
        """Return the current judgements of passages, oldest first."""
        return tuple(one for one in self.held if one.kind not in PREFERENCES)

    def preferences(self, annotator: str) -> list[Judgement]:
        """Return an annotator's current preferences between two routes."""
        return [one for one in self.held if one.kind in PREFERENCES and one.annotator == annotator]

    @cached_property
    def asked(self) -> dict[str, Question]:
        """Return the questions by id, in order."""
        return {question.id: question for question in self.questions}

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Return every passage of the pool with its question, in the order of the questions."""
        return tuple((id, passage) for id in self.asked for passage in self.pool.get(id, {}))

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """Return the questions whose order of labelling was drawn, in that order."""
        places = {one.id: one.drawn.key for one in self.questions if one.drawn}
        return tuple(sorted(places, key=lambda id: -places[id]))

    def by(self, annotator: str) -> dict[Pair, Judgement]:
        """Return an annotator's current judgements, without adjudications."""
        return {j.pair: j for j in self.current if j.annotator == annotator and j.source != "adjudication"}

    def grades(self, annotator: str) -> dict[Pair, int]:
        """Return an annotator's current grades, without adjudications."""
        return {pair: one.grade for pair, one in self.by(annotator).items() if one.grade is not None}

    def adjudicated(self) -> dict[Pair, Judgement]:
        """Return the newest adjudication of each passage that has one, unless it was deferred."""
        return {j.pair: j for j in self.current if j.source == "adjudication" and j.kind != "later"}

    def annotators(self) -> tuple[str, ...]:
        """People and imports of which some judgement stands, by when they began; never a model."""
        own = (j.annotator for j in self.current if j.source in ("person", "import"))
        return tuple(dict.fromkeys(own))

    def models(self) -> tuple[str, ...]:
        """Return the models of which some suggestion stands."""
        return tuple(dict.fromkeys(j.annotator for j in self.current if j.source == "model"))


def read(labels: LabelStore, name: str, *, dropped: bool = False) -> Desk:
    """Return everything of a set; with `dropped` also the generated questions that a person dropped, which
    only their review shows.
    """
    own = labels.get(name)
    every = (stored_question(id, known) for id, known in labels.questions(own.name))
    questions = tuple(question for question in every if dropped or not question.dropped)
    pool: dict[str, dict[str, Pooled]] = {question.id: {} for question in questions}
    for id, one in labels.pool(own.name):
        if id in pool:
            pool[id][one.passage.id] = one
    judged = tuple(one for one in labels.judgements(own.name) if one.question in pool)
    return Desk(own, questions, pool, judged)


def existing(labels: LabelStore, name: str, corpus: str, *, dropped: bool = False) -> Desk | None:
    """Return the set `name` as `read` does, or None if it does not exist yet. Raises BadInput for a deleted
    set or one over another corpus.
    """
    if not labels.exists(name):
        return None
    desk = read(labels, name, dropped=dropped)
    if desk.set.corpus != corpus:
        raise BadInput(
            f"label set {short(name)} is over corpus {desk.set.corpus}, not {corpus}; give another name"
        )
    return desk


def document(question: Question) -> Stored:
    """Return a question's id, and the author's knowledge of it as JSON values."""
    known = asdict(question)
    return known.pop("id"), {**known.pop("query"), **known}


def stored_question(id: str, document: Mapping[str, Any]) -> Question:
    """Return a question from its `document`. Raises BadInput if it is damaged."""
    where = f"question {short(id)}"
    known = {key: document.get(key) for key in ("mode", "split", "answer", "sql", "answerable")}
    made, drawn = document.get("generated"), document.get("drawn")
    return Question(
        id,
        Query(document["text"], turns(document["history"], where)),
        answers=tuple(document["answers"]),
        complaints=tuple(Complaint(**one) for one in document.get("complaints", ())),
        generated=Generated.read(made, where) if made else None,
        drawn=Drawn(**drawn) if drawn else None,
        count=document.get("count", 1),
        nuggets=tuple(Nugget(**one) for one in document.get("nuggets", ())),
        **known,
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
    known = list(map(document, asked))
    store.change_labels(lambda labels: labels.create(fresh, known), deed=("label set made", fresh.name))
    return fresh


def set_guidelines(store: Store, name: str, guidelines: str) -> None:
    """Give annotators other guidelines; BadInput if there is no such set, or the text is too long."""
    people.require("edit")
    told = clean_note(guidelines)
    store.change_labels(lambda labels: labels.set_guidelines(name, told), deed=("guidelines changed", name))


def set_deleted(store: Store, name: str, deleted: bool) -> None:
    """Take a set off the list, with nothing of it lost, or restore it."""
    people.require_own(store.maker("label set made", name))
    deed = "label set deleted" if deleted else "label set restored"
    store.change_labels(lambda labels: labels.set_deleted(name, deleted), deed=(deed, name))


def change_question(store: Store, name: str, id: str, change: Callable[[Question], Question]) -> Question:
    """Store what `change` makes of a question as it is now, and return it. Raises BadInput if it does not
    exist.
    """

    def work(labels: LabelStore) -> Question:
        known = dict(labels.questions(labels.get(name).name))
        if id not in known:
            raise BadInput(f"label set {short(name)} has no question {short(id)}")
        now = change(stored_question(id, known[id]))
        labels.keep_question(name, document(now))
        return now

    return store.change_labels(work)


def load(store: Store, name: str) -> Desk:
    """Everything of a set, as it is at one moment; BadInput lists the sets there are."""
    with store.labels() as labels:
        return read(labels, name)


def caught_up(store: Store, desk: Desk) -> Desk:
    """Return `desk` with the judgements added since it was read, by any process. Judgements never change or
    go.
    """
    last = desk.judgements[-1].number if desk.judgements else 0
    with store.labels() as labels:
        new = tuple(labels.judgements(desk.set.name, last))
    return replace(desk, judgements=desk.judgements + new) if new else desk


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


def undo(store: Store, name: str, annotator: str, *, preferences: bool = False) -> Judgement | None:
    """Take back what the annotator said last of a passage of this set (with `preferences`, of two routes) and
    is not taken back yet; None if nothing is left.

    What held before holds again. Judgements put off and "cannot tell" are taken back as grades are.
    """
    who = clean_name(annotator, "annotator")
    check_own(who)
    return store.change_labels(lambda labels: labels.take_back(name, who, preferences=preferences))


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
    if judgement.kind in PREFERENCES:
        routes_of(judgement)
    if (judgement.source == "model") != who.startswith(MODEL):
        raise BadInput(
            f"annotator {short(who)} with source {judgement.source!r}: names of models begin with "
            f"{MODEL!r}, and no others"
        )
    return replace(judgement, annotator=who, note=clean_note(judgement.note))


def routes_of(preference: Judgement) -> tuple[str, str]:
    """Return the left and the right route of a preference. Raises BadInput if it does not name two."""
    try:
        left, right = map(str, json.loads(preference.passage))
    except (TypeError, ValueError):
        left = right = ""
    if left == right:
        raise BadInput(f'{short(preference.passage)} with kind {preference.kind!r}; give ["LEFT", "RIGHT"]')
    return left, right


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
    """Raise NotAllowed if the current person may not label, or labels under another account, and BadInput for
    the name of a model.
    """
    if annotator.startswith(MODEL):
        raise BadInput(f"annotator {short(annotator)}: names that begin with {MODEL!r} are those of models")
    who = people.require("label")
    if who.account and annotator != who.account:
        raise NotAllowed(f"{who.account} cannot label as {short(annotator)}: labels are their account's")
