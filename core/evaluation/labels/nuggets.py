"""Nuggets of a label set's questions: checked and written by people, and assigned by them to a random part of
the answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from reprlib import repr as short

from core.domain.errors import BadInput
from core.domain.relevance import SUPPORT, NuggetSupport
from core.evaluation.answers import Given, answer_digest
from core.evaluation.dataset import Nugget, Question
from core.evaluation.labels import desk as desks
from core.evaluation.outcome import Outcome, Outcomes
from core.store import Store

MOST_NUGGETS, LONGEST_NUGGET = 30, 500  # of a question; characters
Row = tuple[str, bool, bool]  # of a nugget: its text, whether it is vital, whether it counts


def save(store: Store, name: str, seen: Question, rows: Iterable[Row], who: str) -> Question:
    """Replace the nuggets of the question `seen` by `rows`: a text that was there keeps its author and its
    assignments. Raises BadInput for too many or too long ones, and if somebody changed them meanwhile.
    """
    desks.check_own(author := desks.clean_name(who, "annotator"))
    given = {" ".join(text.split()): (vital, checked) for text, vital, checked in rows}
    given.pop("", None)
    if len(given) > MOST_NUGGETS or any(len(text) > LONGEST_NUGGET for text in given):
        raise BadInput(f"a question has at most {MOST_NUGGETS} nuggets of {LONGEST_NUGGET} characters each")
    before = {one.text: one for one in seen.nuggets}
    fresh = tuple(
        replace(before.get(text, Nugget(text, vital, author)), vital=vital, checked=checked)
        for text, (vital, checked) in given.items()
    )

    def change(now: Question) -> Question:
        if now.nuggets != seen.nuggets:
            raise BadInput("somebody changed the nuggets of this question meanwhile; see them now")
        return replace(now, nuggets=fresh)

    return desks.change_question(store, name, seen.id, change)


@dataclass(frozen=True, slots=True)
class NuggetPair:
    """A checked nugget and an answer of an evaluation that it is to be assigned to."""

    question: str
    nugget: str
    answer: str

    def place(self) -> str:
        """Return its place in a random order, the same for everybody."""
        return hashlib.sha256("\0".join((self.question, self.nugget, self.answer)).encode()).hexdigest()


def assign(store: Store, name: str, pair: NuggetPair, who: str, level: NuggetSupport | None) -> None:
    """Store how far a person says that an answer contains a nugget; None takes it back. Raises BadInput for
    an unknown level, or if the nugget no longer exists.
    """
    desks.check_own(author := desks.clean_name(who, "annotator"))
    if level is not None and level not in SUPPORT:
        raise BadInput(f"support {short(level)}; give {', '.join(SUPPORT)}")
    digest = answer_digest(pair.answer)

    def change(now: Question) -> Question:
        if all(one.text != pair.nugget for one in now.nuggets):
            raise BadInput(f"question {short(pair.question)} no longer has this nugget")
        return replace(
            now,
            nuggets=tuple(
                assigned(one, digest, author, level) if one.text == pair.nugget else one
                for one in now.nuggets
            ),
        )

    desks.change_question(store, name, pair.question, change)


def assigned(nugget: Nugget, digest: str, who: str, level: NuggetSupport | None) -> Nugget:
    """Return the nugget with what a person or a model assigned to an answer, or without it for None."""
    said = {by: one for by, one in nugget.support.get(digest, {}).items() if by != who}
    said |= {} if level is None else {who: level}
    return replace(nugget, support={**nugget.support, digest: said})


def pairs(questions: Mapping[str, Question], outcomes: Outcomes) -> list[NuggetPair]:
    """Return every checked nugget of `questions` with every different answer that routes gave, in a random
    order: who assigns from the front has assigned a random part, wherever it stops.
    """
    found = {
        NuggetPair(id, nugget.text, text)
        for id, by in outcomes.items()
        if id in questions
        for text in {answer_digest(one.text): one.text for one in answered(by)}.values()
        for nugget in questions[id].checked_nuggets
    }
    return sorted(found, key=NuggetPair.place)


def said_of(questions: Mapping[str, Question], pair: NuggetPair) -> Mapping[str, NuggetSupport]:
    """Return what each person assigned to a pair."""
    mine = (one for one in questions[pair.question].nuggets if one.text == pair.nugget)
    return next(mine).support.get(answer_digest(pair.answer), {})


def answered(by: Mapping[str, Outcome]) -> list[Given]:
    """Return the answers of a question's routes that are no abstentions."""
    return [
        Given(one.answer) for one in by.values() if one.status == "ok" and one.answer and not one.abstained
    ]
