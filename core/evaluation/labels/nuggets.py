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
from core.evaluation.answers import answer_digest
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
    nugget: Nugget
    answer: str


def assign(store: Store, name: str, pair: NuggetPair, who: str, level: NuggetSupport | None) -> None:
    """Store how far a person says that an answer contains a nugget; None takes it back. Raises BadInput for
    an unknown level or question.
    """
    desks.check_own(author := desks.clean_name(who, "annotator"))
    if level is not None and level not in SUPPORT:
        raise BadInput(f"support {short(level)}; give {', '.join(SUPPORT)}")
    desks.change_question(
        store, name, pair.question, lambda now: assigned(now, pair.nugget.text, pair.answer, author, level)
    )


def assigned(question: Question, fact: str, answer: str, who: str, level: NuggetSupport | None) -> Question:
    """Return the question with what a person or a model assigned to an answer, or without it for None. A
    nugget that is gone takes nothing.
    """
    digest, given = answer_digest(answer), {} if level is None else {who: level}

    def change(one: Nugget) -> Nugget:
        others = {by: other for by, other in one.support.get(digest, {}).items() if by != who}
        return replace(one, support={**one.support, digest: others | given}) if one.text == fact else one

    return replace(question, nuggets=tuple(map(change, question.nuggets)))


def pairs(questions: Mapping[str, Question], outcomes: Outcomes) -> list[NuggetPair]:
    """Return every checked nugget of `questions` with every different answer that routes gave, in a random
    order, the same for everybody: who assigns from the front has assigned a random part, wherever it stops.
    """
    found = [
        NuggetPair(id, nugget, text)
        for id, by in outcomes.items()
        if id in questions
        for text in answered(by)
        for nugget in questions[id].checked_nuggets
    ]

    def place(one: NuggetPair) -> str:
        return hashlib.sha256("\0".join((one.question, one.nugget.text, one.answer)).encode()).hexdigest()

    return sorted(found, key=place)


def answered(by: Mapping[str, Outcome]) -> list[str]:
    """Return the different answers of a question's routes, abstentions left out."""
    given = [one.answer for one in by.values() if one.status == "ok" and one.answer and not one.abstained]
    return list({answer_digest(text): text for text in given}.values())
