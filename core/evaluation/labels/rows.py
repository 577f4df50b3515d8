"""Questions as a label store keeps them, and whole label sets read from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from reprlib import repr as short
from typing import Any

from core.domain.conversation import turns
from core.domain.types import Query
from core.evaluation.dataset import Complaint, Generated, Question
from core.evaluation.labels.types import Desk
from core.store.labels import LabelStore, Pooled, Stored


def read(labels: LabelStore, name: str, *, dropped: bool = False) -> Desk:
    """Return everything of a set; with `dropped` also the generated questions that a person dropped, which
    nothing but their review is to see.
    """
    own = labels.get(name)
    every = (_question(id, known) for id, known in labels.questions(own.name))
    questions = tuple(question for question in every if dropped or not question.dropped)
    pool: dict[str, dict[str, Pooled]] = {question.id: {} for question in questions}
    for id, one in labels.pool(own.name):
        if id in pool:
            pool[id][one.passage.id] = one
    judged = tuple(one for one in labels.judgements(own.name) if one.question in pool)
    return Desk(own, questions, pool, judged)


def queries(labels: LabelStore, name: str) -> list[Query]:
    """Return the query of each question of a set."""
    return [_question(id, known).query for id, known in labels.questions(name)]


def documents(questions: Iterable[Question]) -> list[Stored]:
    """Return questions as the store keeps them."""
    return list(map(document, questions))


def document(question: Question) -> Stored:
    """Return a question's id, and the author's knowledge of it as JSON values."""
    history = [{"role": turn.role, "text": turn.text} for turn in question.query.history]
    return question.id, {
        "text": question.query.text,
        "history": history,
        "mode": question.mode,
        "split": question.split,
        "answer": question.answer,
        "answers": list(question.answers),
        "answerable": question.answerable,
        "sql": question.sql,
        "complaints": [asdict(one) for one in question.complaints],
        "generated": asdict(question.generated) if question.generated else None,
    }


def _question(id: str, document: Mapping[str, Any]) -> Question:
    query = Query(document["text"], turns(document["history"], f"question {short(id)}"))
    known = {key: document.get(key) for key in ("mode", "split", "answer", "sql", "answerable")}
    said = tuple(Complaint(**one) for one in document.get("complaints", ()))
    made = document.get("generated")
    generated = Generated.read(made, f"question {short(id)}") if made else None
    answers = tuple(document["answers"])
    return Question(id, query, answers=answers, complaints=said, generated=generated, **known)
