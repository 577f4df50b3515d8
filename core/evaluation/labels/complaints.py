"""Complaints about what routes returned, kept as labelled questions of a label set: a set of regressions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from reprlib import repr as short

from core.domain.errors import BadInput
from core.domain.types import Passage, Query, Run
from core.evaluation.complaint import FAILURES
from core.evaluation.dataset import Complaint, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import rows
from core.evaluation.labels.origins import id_of
from core.evaluation.labels.types import Desk
from core.store import Store
from core.store.labels import MODEL, Judgement, LabelSet, LabelStore, Pooled, now
from core.store.run_annotations import MAX_TAG, clean_note

GRADE = 3  # of the passage that should have been there: it answers the question
UNANSWERABLE, ANSWERABLE = "should have abstained", "should have answered"
MAX_ANSWER = 2000  # characters of a gold answer
GUIDELINES = (
    "Questions that people complained of. A passage that somebody named as missing answers its question.\n"
    + desks.DEFAULT
)


@dataclass(frozen=True, slots=True)
class Report:
    """A complaint about one route of a run: the `failure` (see core.evaluation.complaint.FAILURES), the
    person `who` reported it, the missing `passage`, the right `answer` and a `note`, if they are known.
    """

    run: Run
    route: str
    failure: str
    who: str
    passage: Passage | None = None
    answer: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored report: the set, the question and the complaint. `before` is the question as it was, None if
    it is new; `others` are the people who had complained about it. `judgement`: whether its passage was
    graded for it. `again`: the same person had reported the same, and nothing was added. `checkable`: whether
    the question has a passage or an answer to check. `answer` is the right answer as reported.
    """

    set: str
    question: str
    complaint: Complaint
    before: Question | None
    others: tuple[str, ...]
    judgement: bool
    again: bool = False
    checkable: bool = True
    answer: str = ""

    def in_words(self) -> str:
        """Describe the complaint in a sentence."""
        if self.again:
            return f"You have reported this in {self.set} already; nothing was added."
        if self.before is None:
            told = f"Saved: the question is a new test in {self.set}."
        elif not self.others:
            told = f"Saved: added to your earlier complaint in {self.set}."
        else:
            known = ", ".join(self.others)
            told = f"Saved: {known} had reported this question in {self.set}; it keeps both complaints."
        if not self.checkable:
            told += " It has no passage and no answer to check yet: report one, or label it on Label."
        return told


def default_name(corpus: str) -> str:
    """Return the default name of a corpus' set of regressions."""
    return f"regressions {corpus}"[:MAX_TAG]


def report(store: Store, name: str, said: Report) -> Kept:
    """Store a complaint as a question of the set `name`, which is created if it does not exist. One
    transaction, on the disk on return. The same question, after the same turns, is stored once with every
    complaint. Raises BadInput for a set over another corpus or a deleted one, a route that the run does not
    have, an unknown kind of failure or a text that is not allowed.
    """
    complaint, answer = _checked(said)
    desks.check_own(complaint.who)
    name = desks.clean_name(name, "label set")
    fresh = LabelSet(name, said.run.corpus, GUIDELINES, desks.RELEVANT_FROM, now())

    def work(labels: LabelStore) -> Kept:
        _check_run(labels, said.run.id)
        desk = desk_of(labels, fresh)
        before = question_of(desk, said.run.query) if desk else None
        if before and (same := _same(before, complaint, answer)):
            return Kept(name, before.id, same, before, (), judgement=False, again=True)
        question = _with(before or new_question(desk, said.run.query), complaint, answer)
        desks.clean_questions([question])
        if desk is None:
            labels.create(fresh, rows.documents([question]))
        else:
            labels.keep_question(name, rows.document(question))
        judged = said.passage is not None and _judge(labels, name, question.id, said, complaint)
        others = (
            dict.fromkeys(one.who for one in before.complaints if one.who != complaint.who) if before else {}
        )
        checkable = bool(question.answers or question.answerable is False) or any(
            one.passage or one.failure == ANSWERABLE for one in question.complaints
        )
        return Kept(
            name, question.id, complaint, before, tuple(others), judged, checkable=checkable, answer=answer
        )

    return store.change_labels(work, deed=("wrong result reported", said.run.id))


def undo(store: Store, kept: Kept) -> None:
    """Take a complaint back, with the grade that it gave. The question goes where nobody else said anything
    of it, and the set where that was its only question. BadInput where somebody removed it meanwhile.
    """

    desks.check_own(kept.complaint.who)

    def work(labels: LabelStore) -> None:
        desk = rows.read(labels, kept.set)
        now = desk.asked.get(kept.question)
        if now is None or kept.complaint not in now.complaints:
            raise BadInput(f"the complaint in {kept.set} is gone already")
        left = tuple(one for one in now.complaints if one != kept.complaint)
        said = {one.annotator for one in desk.current() if one.question == kept.question}
        if kept.before is None and not left and said <= {kept.complaint.who}:
            labels.drop_question(kept.set, kept.question)
            return
        labels.keep_question(kept.set, rows.document(_without(now, left, kept)))
        if kept.judgement:
            withdrawn = Judgement(
                kept.question, kept.complaint.passage, kept.complaint.who, "person", "withdrawn"
            )
            labels.judge(kept.set, [withdrawn])

    store.change_labels(work)


def _without(now: Question, left: tuple[Complaint, ...], kept: Kept) -> Question:
    """Return the question without a complaint: as it was before, if nobody complained after it."""
    before = kept.before or replace(now, complaints=(), answers=(), answer=None, answerable=None)
    if left == before.complaints:
        return before
    answers = tuple(one for one in now.answers if one != kept.answer or one in before.answers)
    return replace(now, complaints=left, answers=answers, answer=next(iter(answers), None))


def of_sets(store: Store, corpus: str | None = None) -> list[Desk]:
    """Return the label sets with a complaint in them, over one corpus or any."""
    every = [desks.load(store, one.name) for one in desks.sets(store) if corpus in (None, one.corpus)]
    return [desk for desk in every if any(question.complaints for question in desk.questions)]


def _checked(said: Report) -> tuple[Complaint, str]:
    if said.failure not in FAILURES:
        raise BadInput(f"failure {short(said.failure)}; give one of: {', '.join(FAILURES)}")
    routes = [result.route for result in said.run.results]
    if said.route not in routes:
        raise BadInput(f"run {said.run.id} has no route {short(said.route)}; it has: {', '.join(routes)}")
    answer = " ".join(said.answer.split())
    if len(answer) > MAX_ANSWER:
        raise BadInput(f"the gold answer has {len(answer):,} characters; give at most {MAX_ANSWER:,}")
    who = desks.clean_name(said.who, "annotator")
    if who.startswith(MODEL):
        raise BadInput(f"annotator {short(who)}: names that begin with {MODEL!r} are those of models")
    passage = said.passage.id if said.passage else ""
    note = clean_note(said.note)
    return Complaint(who, said.failure, said.run.id, said.route, passage, note, now()), answer


def _check_run(labels: LabelStore, run: str) -> None:
    """BadInput for a run that was deleted; one that was never stored here may be reported all the same."""
    if labels.run_deleted(run):
        raise BadInput(f"run {run} was deleted; undo that on Sessions, then report it")


def desk_of(labels: LabelStore, fresh: LabelSet) -> Desk | None:
    """Return the set as it is, or None if it does not exist yet."""
    if not labels.exists(fresh.name):
        return None
    desk = rows.read(labels, fresh.name)  # BadInput for a deleted one
    if desk.set.corpus != fresh.corpus:
        raise BadInput(
            f"label set {short(fresh.name)} is over corpus {desk.set.corpus}, and this run over "
            f"{fresh.corpus}; "
            "give another name"
        )
    return desk


def question_of(desk: Desk, query: Query) -> Question | None:
    """Return the set's question with this text and conversation, or None."""
    return next((question for question in desk.questions if question.query == query), None)


def new_question(desk: Desk | None, query: Query) -> Question:
    """Return a question for the set, with an id that no other of its questions has."""
    if desk is not None and len(desk.questions) >= desks.MAX_QUESTIONS:
        raise BadInput(
            f"label set {short(desk.set.name)} has {desks.MAX_QUESTIONS:,} questions, and no more are allowed"
        )
    id = id_of(query)
    while desk is not None and id in desk.asked:
        id += "+"
    return Question(id, query)


def _same(question: Question, new: Complaint, answer: str) -> Complaint | None:
    """Return a complaint that says the same, where the new one adds neither an answer nor a note."""
    if (answer and answer not in question.answers) or new.note:
        return None
    told = (new.who, new.failure, new.route, new.passage)
    known = question.complaints
    return next((one for one in known if (one.who, one.failure, one.route, one.passage) == told), None)


def _with(question: Question, complaint: Complaint, answer: str) -> Question:
    answers = tuple(dict.fromkeys((*question.answers, *([answer] if answer else ()))))
    answerable = question.answerable
    if complaint.failure == UNANSWERABLE:
        answerable = False
    elif answer or complaint.passage or complaint.failure == ANSWERABLE:
        answerable = True
    return replace(
        question,
        answers=answers,
        answer=question.answer or answer or None,
        answerable=answerable,
        complaints=(*question.complaints, complaint),
    )


def _judge(labels: LabelStore, name: str, question: str, said: Report, complaint: Complaint) -> bool:
    """Grade the passage that should have been there, unless the same person did; whether it was done now."""
    if said.passage is None:
        return False
    labels.add_to_pool(name, {question: [Pooled(said.passage, found_by(said.run, said.passage.id))]})
    standing = rows.read(labels, name).by(complaint.who).get((question, said.passage.id))
    if standing is not None and standing.grade == GRADE:
        return False
    told = Judgement(question, said.passage.id, complaint.who, "person", "grade", GRADE, complaint.note)
    labels.judge(name, [told])
    return True


def found_by(run: Run, passage: str) -> tuple[tuple[str, int], ...]:
    """Return the routes of a run that ranked a passage, with its rank in each."""
    return tuple(
        (result.route, at)
        for result in run.results
        for at, hit in enumerate(result.hits, 1)
        if hit.passage.id == passage
    )
