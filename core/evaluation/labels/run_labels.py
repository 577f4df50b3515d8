"""Labels given on a run: complaints, grades and accepted answers, stored for its question in a label set.

A question with a complaint is a regression test. Each change is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any

from core.domain.errors import BadInput
from core.domain.types import Passage, Run
from core.evaluation.dataset import FAILURES, Complaint, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.pool import id_of, ranks
from core.store import Store
from core.store.labels import Judgement, LabelSet, LabelStore, Pooled, now
from core.store.run_annotations import MAX_TAG, clean_note
from core.store.trace_sources.values import VOCABULARY

GRADE = 3  # of the passage that should have been there: it answers the question
UNANSWERABLE, ANSWERABLE = "should have abstained", "should have answered"
MAX_ANSWER = 2000  # characters of a gold answer
GUIDELINES = (
    "Questions that people complained of. A passage that somebody named as missing answers its question.\n"
    + desks.DEFAULT
)


@dataclass(frozen=True, slots=True)
class Report:
    """A complaint about one route of a run: the `failure` (see core.evaluation.dataset.FAILURES), the
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
    """A complaint, grade or answer stored for a question of the label set `set`, with the state before it."""

    set: str
    question: Question
    # the question as it was, None if it is new
    before: Question | None
    who: str
    # the id of the passage that was graded for it, "" if none was
    graded: str = ""
    answer: str = ""
    complaint: Complaint | None = None
    # whether the same person had reported the same, and nothing was added
    again: bool = False

    def in_words(self) -> str:
        """Describe the complaint in a sentence."""
        if self.again:
            return f"You have reported this in {self.set} already; nothing was added."
        known, earlier = self.question, self.before.complaints if self.before else ()
        if self.before is None:
            text = f"Saved: the question is a new test in {self.set}."
        elif names := ", ".join(dict.fromkeys(one.who for one in earlier if one.who != self.who)):
            text = f"Saved: {names} had reported this question in {self.set}; it keeps both complaints."
        else:
            text = f"Saved: added to your earlier complaint in {self.set}."
        named = any(one.passage or one.failure == ANSWERABLE for one in known.complaints)
        if not (named or known.answers or known.answerable is False):
            text += " It has no passage and no answer to check yet: report one, or label it on Label."
        return text


def complaint_set(corpus: str) -> str:
    """Return the default name of a corpus' set of regressions."""
    return f"regressions {corpus}"[:MAX_TAG]


def grade_set(corpus: str) -> str:
    """Return the name of the set for questions that no label set of the corpus has."""
    return f"grades {corpus}"[:MAX_TAG]


def report(store: Store, name: str, said: Report) -> Kept:
    """Store a complaint as a question of the set `name`, which is created if it does not exist. The same
    question, after the same turns, is stored once with every complaint. Raises BadInput for a set over
    another corpus or a deleted one, a route that the run does not have, an unknown kind of failure or a text
    that is not allowed.
    """
    complaint, answer = _checked(said)
    who, run, passage = complaint.who, said.run, said.passage
    name = desks.clean_name(name, "label set")

    def complained(question: Question) -> Question:
        new = replace(complaint, run="", created="")
        same = [replace(one, run="", note="", created="") for one in question.complaints]
        if new in same and (not answer or answer in question.answers):
            return question
        answerable = question.answerable
        if complaint.failure == UNANSWERABLE:
            answerable = False
        elif answer or complaint.passage or complaint.failure == ANSWERABLE:
            answerable = True
        question = replace(question, answerable=answerable, complaints=(*question.complaints, complaint))
        return _answered(question, answer)

    def work(labels: LabelStore) -> Kept:
        # a run that was never stored here may be reported all the same
        if labels.run_deleted(run.id):
            raise BadInput(f"run {run.id} was deleted; undo that on Sessions, then report it")
        desk, before, question = _asked(labels, name, run, complained, GUIDELINES)
        if question == before:
            return Kept(name, question, before, who, complaint=complaint, again=True)
        graded = ""
        if passage is not None:
            standing = desk.grades(who).get((question.id, passage.id)) if desk else None
            if standing != GRADE:
                graded = passage.id
                told = Judgement(question.id, graded, who, "person", "grade", GRADE, complaint.note)
                _judge(labels, name, run, passage, told)
            else:
                _pool(labels, name, run, passage, question.id)
        return Kept(name, question, before, who, graded, answer, complaint)

    return store.change_labels(work, deed=("wrong result reported", run.id))


def grade(store: Store, run: Run, passage: str, who: str, value: int) -> Judgement:
    """Store the grade 0 to 3 of a run's passage as a label by `who`, and return the judgement.

    If `who` gave this grade already, it is withdrawn, so that the grade before it counts again. The label
    goes into the first set of the corpus with this question, else into `grade_set`, which is created.
    Raises BadInput for another grade or a passage that is not in the run, NotAllowed without the right to
    label.
    """
    if passage not in run.passages:
        raise BadInput(f"run {run.id} has no passage {passage!r}")
    desks.check_own(who)

    def work(labels: LabelStore) -> Judgement:
        name = _set_of(labels, run)
        desk, _, question = _asked(labels, name, run)
        told = desks.clean(Judgement(question.id, passage, who, "person", "grade", value))
        if desk and desk.grades(told.annotator).get(told.pair) == value:
            told = replace(told, kind="withdrawn", grade=None)
        _judge(labels, name, run, run.passages[passage], told)
        return told

    return store.change_labels(work, deed=("hit graded", run.id))


def mark(store: Store, run: Run, who: str, *, passage: Passage | None = None, answer: str = "") -> Kept:
    """Grade any passage of the corpus as answering a run's question, or accept an answer as right, in the
    set that `grade` takes. Raises NotAllowed without the right to label.
    """
    desks.check_own(who)
    answer = " ".join(answer.split())[:MAX_ANSWER]

    def answered(question: Question) -> Question:
        return _answered(replace(question, answerable=True), answer) if answer else question

    def work(labels: LabelStore) -> Kept:
        name = _set_of(labels, run)
        _, before, question = _asked(labels, name, run, answered)
        if passage is not None:
            told = desks.clean(Judgement(question.id, passage.id, who, "person", "grade", GRADE))
            _judge(labels, name, run, passage, told)
        return Kept(name, question, before, who, passage.id if passage else "", answer)

    return store.change_labels(work, deed=("question labelled", run.id))


def undo(store: Store, kept: Kept) -> None:
    """Take back what was stored. A question that it added goes unless something else is known of it, and the
    set if that was its only question. Raises BadInput if it is gone already.
    """
    desks.check_own(kept.who)
    id = kept.question.id

    def work(labels: LabelStore) -> None:
        desk = desks.read(labels, kept.set)
        known = desk.asked.get(id)
        if known is None or (kept.complaint and kept.complaint not in known.complaints):
            raise BadInput(f"what was stored in {kept.set} is gone already")
        first = kept.before or Question(id, known.query)
        complaints = tuple(one for one in known.complaints if one != kept.complaint)
        answers = tuple(one for one in known.answers if one != kept.answer or one in first.answers)
        said = [(one.annotator, one.passage) for one in desk.current if one.question == id]
        others = any(one != (kept.who, kept.graded) for one in said)
        if kept.before is None and not (complaints or answers or others):
            labels.drop_question(kept.set, id)
            return
        left = replace(known, complaints=complaints, answers=answers, answer=next(iter(answers), None))
        if (complaints, answers) == (first.complaints, first.answers):
            left = replace(left, answer=first.answer, answerable=first.answerable)
        labels.keep_question(kept.set, desks.document(left))
        if kept.graded:
            labels.judge(kept.set, [Judgement(id, kept.graded, kept.who, "person", "withdrawn")])

    store.change_labels(work)


def complaint_sets(store: Store, corpus: str | None = None) -> list[Desk]:
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
    desks.check_own(who)
    passage = said.passage.id if said.passage else ""
    note = clean_note(said.note)
    return Complaint(who, said.failure, said.run.id, said.route, passage, note, now()), answer


def _set_of(labels: LabelStore, run: Run) -> str:
    """Return the first set over the run's corpus that has its question, else `grade_set`."""
    for one in labels.sets():
        if one.corpus == run.corpus:
            asked = (desks.stored_question(id, known) for id, known in labels.questions(one.name))
            if any(question.query == run.query for question in asked):
                return one.name
    return grade_set(run.corpus)


def _asked(
    labels: LabelStore,
    name: str,
    run: Run,
    changed: Callable[[Question], Question] = lambda question: question,
    guidelines: str = desks.DEFAULT,
) -> tuple[Desk | None, Question | None, Question]:
    """Store the question of a run as `changed` returns it; the set and the question are added if they are
    missing. Return the set and the question as they were (None if they were not there), and as it is.
    """
    desk = desks.existing(labels, name, run.corpus)
    known = desk.asked if desk else {}
    before = next((question for question in known.values() if question.query == run.query), None)
    id = id_of(run.query)
    while id in known:
        id += "+"
    question = changed(before or Question(id, run.query))
    desks.clean_questions([*([] if before else known.values()), question])
    if desk is None:
        fresh = LabelSet(name, run.corpus, guidelines, desks.RELEVANT_FROM, now())
        labels.create(fresh, [desks.document(question)])
    elif question != before:
        labels.keep_question(name, desks.document(question))
    return desk, before, question


def _answered(question: Question, answer: str) -> Question:
    answers = tuple(dict.fromkeys((*question.answers, *([answer] if answer else ()))))
    return replace(question, answers=answers, answer=question.answer or answer or None)


def _pool(labels: LabelStore, name: str, run: Run, passage: Passage, question: str) -> None:
    """Add a passage to the pool, with its rank in each route of the run that found it."""
    found = ranks((result.route, [hit.passage.id for hit in result.hits]) for result in run.results)
    labels.add_to_pool(name, {question: [Pooled(passage, tuple(found.get(passage.id, {}).items()))]})


def _judge(labels: LabelStore, name: str, run: Run, passage: Passage, told: Judgement) -> None:
    _pool(labels, name, run, passage, told.question)
    labels.judge(name, [told])


_WORDS = VOCABULARY["feedback"]
HALF = 0.5  # of a score from 0 to 1, below which it is bad
MAX_WHO, MAX_NOTE = 64, 500


@dataclass(frozen=True, slots=True)
class FromFeedback:
    """The number of scores that became complaints, the number of all scores, and the label sets concerned."""

    added: int = 0
    of: int = 0
    sets: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return that as a sentence; "" if there were no scores."""
        if not self.of:
            return ""
        where = f", in label set {' and '.join(self.sets)}" if self.sets else ""
        return f"{self.of} scores of other tools, {self.added} of them kept as complaints{where}."


def from_traces(store: Store, said: Sequence[tuple[Run, Mapping[str, Any]]]) -> FromFeedback:
    """Keep what is bad of `said` as complaints in the regression set of its corpus.

    A score whose name does not say whether more is better is left alone.
    """
    added, names = 0, dict[str, None]()
    for run, one in said:
        if not negative(one) or not run.results:
            continue
        name = complaint_set(run.corpus)
        value = one["label"] or f"{one['value']:g}"
        note = f"{one['name']}: {value}. {one['note']}".strip()[:MAX_NOTE]
        who = " ".join(f"{one['source']}: {one['who'] or one['name']}".split())[:MAX_WHO]
        failure = "wrong answer" if any(part in one["name"].lower() for part in _WORDS["answer"]) else "other"
        kept = report(store, name, Report(run, run.results[0].route, failure, who, note=note))
        added += not kept.again
        names[name] = None
    return FromFeedback(added, len(said), tuple(names))


def negative(one: Mapping[str, Any]) -> bool:
    """Return whether a score, as `core.store.trace_sources.values.said` returns it, is negative."""
    name, value, label = one["name"].lower(), one["value"], one["label"].strip().lower()
    if label:
        return label in _WORDS["bad"]
    if value is None:
        return False
    if any(part in name for part in _WORDS["thumbs"]):
        return bool(value <= 0)
    return bool(value < HALF) and any(part in name for part in _WORDS["quality"])
