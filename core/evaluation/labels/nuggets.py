"""Nuggets of a label set's questions: checked and written by people, and assigned by them to a random part of
the answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from core.domain.errors import BadInput
from core.domain.relevance import NuggetSupport
from core.evaluation.answers import answer_digest
from core.evaluation.dataset import Nugget, Question
from core.evaluation.labels import desk as desks
from core.evaluation.outcome import Outcome, Outcomes
from core.store import Store

MOST_NUGGETS, LONGEST_NUGGET = 30, 500  # of a question; characters
NuggetPair = tuple[str, Nugget, str]  # the id of a question, a checked nugget of it, and an answer to it


def save(store: Store, name: str, seen: Question, given: Iterable[Nugget], who: str) -> Question:
    """Replace the nuggets of the question `seen`; those without an author are by `who`, and empty texts are
    left out. Raises BadInput for too many or too long ones, and if somebody changed them meanwhile.
    """
    desks.check_own(author := desks.clean_name(who, "annotator"))
    texts = {text: one for one in given if (text := " ".join(one.text.split()))}
    if len(texts) > MOST_NUGGETS or any(len(text) > LONGEST_NUGGET for text in texts):
        raise BadInput(f"a question has at most {MOST_NUGGETS} nuggets of {LONGEST_NUGGET} characters each")
    fresh = tuple(replace(one, text=text, by=one.by or author) for text, one in texts.items())

    def change(now: Question) -> Question:
        if now.nuggets != seen.nuggets:
            raise BadInput("somebody changed the nuggets of this question meanwhile; see them now")
        return replace(now, nuggets=fresh)

    return desks.change_question(store, name, seen.id, change)


def assign(store: Store, name: str, pair: NuggetPair, who: str, level: NuggetSupport | None) -> None:
    """Store how far a person says that an answer contains a nugget; None takes it back. Raises BadInput for
    an unknown question.
    """
    desks.check_own(author := desks.clean_name(who, "annotator"))
    id, nugget, answer = pair
    desks.change_question(store, name, id, lambda now: assigned(now, nugget.text, answer, author, level))


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
    asked = [(questions[id], answered(by)) for id, by in outcomes.items() if id in questions]
    found = [(one.id, fact, text) for one, texts in asked for text in texts for fact in one.checked_nuggets]
    return sorted(
        found, key=lambda one: hashlib.sha256(f"{one[0]}\0{one[1].text}\0{one[2]}".encode()).digest()
    )


def answered(by: Mapping[str, Outcome]) -> list[str]:
    """Return the different answers of a question's routes, abstentions left out."""
    given = [one.answer for one in by.values() if one.status == "ok" and one.answer and not one.abstained]
    return list({answer_digest(text): text for text in given}.values())
