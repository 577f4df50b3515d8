"""Label sets as rows and back, through a connection that the caller has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Any

from core.domain.conversation import turns
from core.domain.errors import BadInput
from core.domain.types import Passage, Query
from core.evaluation.dataset import Complaint, Generated, Question
from core.evaluation.labels.types import Desk, Judgement, LabelSet, Pooled, standing
from core.store.codec import dumps
from core.store.rows import bind, parsed, text
from core.store.runs import keep_text

MAX_SETS = 1000
_SET = "SELECT name, corpus, guidelines, counts, created, deleted FROM label_sets"
_JUDGED = "SELECT number, question, passage, annotator, source, kind, grade, note, created FROM judgements"


def every(connection: sqlite3.Connection, *, deleted: bool) -> list[LabelSet]:
    """Return the sets that are not deleted, or those that are."""
    return [_set(row) for row in connection.execute(f"{_SET} WHERE deleted = ?", (deleted,))]


def read(connection: sqlite3.Connection, name: str, *, dropped: bool = False) -> Desk:
    """As `desk.load`, through a connection; with `dropped` also the generated questions that a person
    dropped, which nothing but their review is to see.
    """
    kept = _set(row_of(connection, name))
    key = (bind(kept.name),)
    asked = connection.execute(
        "SELECT id, question FROM label_questions WHERE label_set = ? ORDER BY place", key
    )
    every = (_question(text(row["id"]), parsed(row["question"])) for row in asked)
    questions = tuple(question for question in every if dropped or not question.dropped)
    pool: dict[str, dict[str, Pooled]] = {question.id: {} for question in questions}
    for row in connection.execute(
        "SELECT question, passage, doc_id, title, t.text, start, end, found FROM label_pool p "
        "JOIN texts t ON t.hash = p.text WHERE label_set = ?",
        key,
    ):
        id, doc, title, words = (text(row[column]) for column in ("passage", "doc_id", "title", "text"))
        passage = Passage(id, doc, title, words, row["start"], row["end"])
        found = tuple((route, rank) for route, rank in parsed(row["found"]))
        if (question := text(row["question"])) in pool:
            pool[question][passage.id] = Pooled(passage, found)
    said = tuple(one for one in judged(connection, kept.name) if one.question in pool)
    return Desk(kept, questions, pool, said)


def version(connection: sqlite3.Connection, name: str) -> tuple[str, str, int, int, int, int, int]:
    """Return `desk.version`, read through a connection."""
    row = row_of(connection, name)
    key = (row["name"],)
    # judgements are only added, and so is what a passage was found by: numbers and lengths tell every change
    newest = connection.execute("SELECT max(number) FROM judgements WHERE label_set = ?", key).fetchone()[0]
    pooled = connection.execute(
        "SELECT count(*), sum(length(found)) FROM label_pool WHERE label_set = ?", key
    ).fetchone()
    asked = connection.execute(
        "SELECT count(*), sum(length(question)) FROM label_questions WHERE label_set = ?", key
    ).fetchone()
    counts = (pooled[0], pooled[1] or 0, asked[0], asked[1] or 0)
    return text(row["guidelines"]), row["created"], newest or 0, *counts


def insert(connection: sqlite3.Connection, fresh: LabelSet, questions: Sequence[Question]) -> None:
    """Write a new set. Raises BadInput if its name is taken or there are too many sets."""
    row = connection.execute("SELECT deleted FROM label_sets WHERE name = ?", (bind(fresh.name),)).fetchone()
    if row is not None:
        what = "was deleted; restore it or give another name" if row["deleted"] else "exists already"
        raise BadInput(f"label set {short(fresh.name)} {what}")
    (count,) = connection.execute("SELECT count(*) FROM label_sets").fetchone()
    if count >= MAX_SETS:
        raise BadInput(f"there are {count} label sets, and no more are allowed")
    connection.execute(
        "INSERT INTO label_sets (name, corpus, guidelines, counts, created) VALUES (?, ?, ?, ?, ?)",
        (*map(bind, (fresh.name, fresh.corpus, fresh.guidelines)), fresh.relevant_from, fresh.created),
    )
    connection.executemany(
        "INSERT INTO label_questions (label_set, id, place, question) VALUES (?, ?, ?, ?)",
        [
            (bind(fresh.name), bind(q.id), place, bind(dumps(_document(q))))
            for place, q in enumerate(questions)
        ],
    )


def keep_question(connection: sqlite3.Connection, name: str, question: Question) -> None:
    """Write a question of a set, replacing the question with its id or after all other questions."""
    key = (bind(name), bind(question.id))
    connection.execute(
        "INSERT INTO label_questions (label_set, id, place, question) VALUES (?, ?, "
        "(SELECT coalesce(max(place), -1) + 1 FROM label_questions WHERE label_set = ?), ?) "
        "ON CONFLICT (label_set, id) DO UPDATE SET question = excluded.question",
        (*key, key[0], bind(dumps(_document(question)))),
    )


def drop_question(connection: sqlite3.Connection, name: str, question: str) -> None:
    """Remove a question with its passages and judgements, and a set that has no other question."""
    key = (bind(name), bind(question))
    for table, column in (("judgements", "question"), ("label_pool", "question"), ("label_questions", "id")):
        connection.execute(f"DELETE FROM {table} WHERE label_set = ? AND {column} = ?", key)
    left = connection.execute("SELECT 1 FROM label_questions WHERE label_set = ?", key[:1]).fetchone()
    if left is None:
        connection.execute("DELETE FROM label_sets WHERE name = ?", key[:1])


def pool_all(connection: sqlite3.Connection, name: str, found: Mapping[str, Iterable[Pooled]]) -> int:
    """As `desk.add_to_pool`, through a connection."""
    own, new = text(row_of(connection, name)["name"]), 0
    for question, passages in found.items():
        _check_question(connection, own, question)
        for one in passages:
            if not one.passage.id:
                raise BadInput(f"a passage found for question {short(question)} has no id")
            key = tuple(map(bind, (own, question, one.passage.id)))
            row = connection.execute(
                "SELECT found FROM label_pool WHERE label_set = ? AND question = ? AND passage = ?", key
            ).fetchone()
            known = dict(parsed(row["found"])) if row is not None else {}
            merged = {**known, **{route: rank for route, rank in one.found if route not in known}}
            ranks = bind(dumps(list(merged.items())))
            if row is None:
                passage = one.passage
                hash = keep_text(connection, passage.text)
                place = (bind(passage.doc_id), passage.start, passage.end, bind(passage.title))
                connection.execute(
                    "INSERT INTO label_pool (label_set, question, passage, doc_id, start, end, title, text, "
                    "found) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*key, *place, hash, ranks),
                )
                new += 1
            elif merged != known:
                connection.execute(
                    "UPDATE label_pool SET found = ? WHERE label_set = ? AND question = ? AND passage = ?",
                    (ranks, *key),
                )
    return new


def append(connection: sqlite3.Connection, name: str, judgements: Sequence[Judgement]) -> list[int]:
    """Add checked judgements to a set; their numbers. BadInput for a passage that is not in its pool."""
    own = text(row_of(connection, name)["name"])
    numbers = []
    for one in judgements:
        _check_pooled(connection, own, one)
        values = (own, one.question, one.passage, one.annotator, one.source, one.kind, one.grade, one.note)
        row = connection.execute(
            "INSERT INTO judgements (label_set, question, passage, annotator, source, kind, grade, note, "
            "created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (*map(bind, values), one.created or now()),
        ).fetchone()
        numbers.append(int(row["number"]))
    return numbers


def take_back(connection: sqlite3.Connection, name: str, annotator: str) -> Judgement | None:
    """As `desk.undo`, through a connection."""
    own = text(row_of(connection, name)["name"])
    said = [one for one in judged(connection, own) if one.annotator == annotator]
    stacks = standing(said)
    last = max((stack[-1] for stack in stacks.values() if stack), key=lambda j: j.number, default=None)
    if last is not None:
        undone = replace(last, kind="withdrawn", grade=None, note="", created="")
        append(connection, own, [undone])
    return last


def judged(connection: sqlite3.Connection, name: str) -> list[Judgement]:
    """Return every judgement of a set, oldest first."""
    found = connection.execute(f"{_JUDGED} WHERE label_set = ? ORDER BY number", (bind(name),))
    return [
        Judgement(**{column: text(row[column]) for column in row.keys()})  # noqa: SIM118 - a Row's keys
        for row in found
    ]


def row_of(connection: sqlite3.Connection, name: str, *, deleted: bool = False) -> sqlite3.Row:
    """Return the row of a set that is on the list (or, if `deleted`, off it). Raises BadInput listing the
    ones there are.
    """
    row: sqlite3.Row | None = connection.execute(f"{_SET} WHERE name = ?", (bind(name),)).fetchone()
    if row is not None and bool(row["deleted"]) == deleted:
        return row
    if row is not None:
        raise BadInput(f"label set {short(name)} {'was' if row['deleted'] else 'is not'} deleted")
    known = connection.execute("SELECT name FROM label_sets WHERE NOT deleted ORDER BY name").fetchall()
    names = ", ".join(text(one["name"]) for one in known[:20])
    raise BadInput(f"there is no label set {short(name)}; there are: {names or 'none'}")


def _check_question(connection: sqlite3.Connection, name: str, question: str) -> None:
    key = (bind(name), bind(question))
    if not connection.execute("SELECT 1 FROM label_questions WHERE label_set = ? AND id = ?", key).fetchone():
        raise BadInput(f"label set {short(name)} has no question {short(question)}")


def _check_pooled(connection: sqlite3.Connection, name: str, judgement: Judgement) -> None:
    _check_question(connection, name, judgement.question)
    key = tuple(map(bind, (name, judgement.question, judgement.passage)))
    if not connection.execute(
        "SELECT 1 FROM label_pool WHERE label_set = ? AND question = ? AND passage = ?", key
    ).fetchone():
        raise BadInput(
            f"passage {short(judgement.passage)} was not found for question {short(judgement.question)} "
            f"of label set {short(name)}; add it to the pool first"
        )


def _set(row: sqlite3.Row) -> LabelSet:
    name, corpus, guidelines = (text(row[column]) for column in ("name", "corpus", "guidelines"))
    return LabelSet(name, corpus, guidelines, row["counts"], row["created"])


def _document(question: Question) -> dict[str, Any]:
    """Return the author's knowledge of a question as JSON values."""
    history = [{"role": turn.role, "text": turn.text} for turn in question.query.history]
    return {
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


def now() -> str:
    """Return the current time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
