"""Label sets in the store: their questions, the passages found for them, and every judgement ever made."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Any, Literal, get_args

from core.domain.errors import BadInput
from core.domain.types import Passage
from core.store.codec import dumps
from core.store.rows import bind, parsed, text
from core.store.runs import keep_text

MAX_SETS = 1000
Kind = Literal["grade", "cannot", "later", "withdrawn", "left", "right", "tie", "neither"]
Source = Literal["person", "model", "import", "adjudication"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Of two routes' results, which an annotator saw side by side, and what that counts for the left one.
PREFERENCES = {"left": 1.0, "right": 0.0, "tie": 0.5, "neither": 0.5}
SOURCES: tuple[Source, ...] = get_args(Source)
GRADES = {
    3: "answers the question",
    2: "answers part of it, or is a necessary step to the answer",
    1: "background: same topic, without an answer",
    0: "not relevant",
}
MODEL = "model:"  # what the names of annotators that are models begin with, and no other
Pair = tuple[str, str]  # ids of a question and a passage
Stored = tuple[str, Mapping[str, Any]]  # a question: its id, and what its author knows of it as JSON values
_SET = "SELECT name, corpus, guidelines, counts, created, deleted FROM label_sets"
_JUDGED = (
    "SELECT number, question, passage, annotator, source, kind, grade, note, created FROM judgements "
    "WHERE label_set = ? AND number > ? ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class LabelSet:
    """A set of questions over a corpus to be labelled."""

    name: str
    corpus: str
    # the instructions for annotators
    guidelines: str
    # the grade from which a passage is relevant
    relevant_from: int
    # ISO 8601, UTC
    created: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """An annotator's judgement of a passage for a question.

    The kind "cannot" means cannot tell, "later" deferred; "withdrawn" takes back the newest active judgement
    by the same annotator of the same passage, so that the previous one counts again. An adjudication is
    stored next to the annotator's own judgement. A judgement of PREFERENCES compares two routes' results;
    its `passage` is then a JSON array of the left and the right route.
    """

    question: str
    passage: str
    annotator: str
    source: Source
    kind: Kind
    # 0 to 3 for the kind "grade", else None
    grade: int | None = None
    note: str = ""
    # grows with every judgement of a store
    number: int = 0
    # ISO 8601, UTC
    created: str = ""

    @property
    def pair(self) -> Pair:
        """Return the question and the passage."""
        return self.question, self.passage


@dataclass(frozen=True, slots=True)
class Pooled:
    """A passage as it was when it was found first, and by whom: (route, its rank from 1)."""

    passage: Passage
    found: tuple[tuple[str, int], ...] = ()


class LabelStore:
    """The label sets of a store, through a connection; a method raises BadInput if its set does not exist."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def sets(self, *, deleted: bool = False) -> list[LabelSet]:
        """Return the sets that are not deleted, or those that are."""
        return [_set(row) for row in self._connection.execute(f"{_SET} WHERE deleted = ?", (deleted,))]

    def exists(self, name: str) -> bool:
        """Return whether a name is taken, by a deleted set too."""
        return self._row("SELECT 1 FROM label_sets WHERE name = ?", name) is not None

    def get(self, name: str, *, deleted: bool = False) -> LabelSet:
        """Return a set that is on the list (or, if `deleted`, off it). BadInput lists the ones there are."""
        row = self._row(f"{_SET} WHERE name = ?", name)
        if row is not None and bool(row["deleted"]) == deleted:
            return _set(row)
        if row is not None:
            raise BadInput(f"label set {short(name)} {'was' if row['deleted'] else 'is not'} deleted")
        known = self._connection.execute("SELECT name FROM label_sets WHERE deleted = 0 ORDER BY name")
        names = ", ".join(text(one["name"]) for one in known.fetchall()[:20])
        raise BadInput(f"there is no label set {short(name)}; there are: {names or 'none'}")

    def questions(self, name: str) -> list[Stored]:
        """Return the questions of a set in their order."""
        found = self._connection.execute(
            "SELECT id, question FROM label_questions WHERE label_set = ? ORDER BY place", (bind(name),)
        )
        return [(text(row["id"]), parsed(row["question"])) for row in found]

    def pool(self, name: str) -> list[tuple[str, Pooled]]:
        """Return the passages to judge, each with the id of its question."""
        rows = self._connection.execute(
            'SELECT question, passage, doc_id, title, t.text, start, "end", found FROM label_pool p '
            "JOIN texts t ON t.hash = p.text WHERE label_set = ?",
            (bind(name),),
        )
        found = []
        for row in rows:
            id, doc, title, words = (text(row[column]) for column in ("passage", "doc_id", "title", "text"))
            passage = Passage(id, doc, title, words, row["start"], row["end"])
            ranks = tuple((route, rank) for route, rank in parsed(row["found"]))
            found.append((text(row["question"]), Pooled(passage, ranks)))
        return found

    def judgements(self, name: str, after: int = 0) -> list[Judgement]:
        """Return every judgement of a set with a number above `after`, oldest first. They never change."""
        found = self._connection.execute(_JUDGED, (bind(name), after))
        return [
            Judgement(**{column: text(row[column]) for column in row.keys()})  # noqa: SIM118 - a Row's keys
            for row in found
        ]

    def version(self, name: str) -> tuple[str, str, int, int, int, int, int]:
        """Return a version that stays equal until any process changes the set: its guidelines, its creation
        time, the number of its newest judgement, and two numbers each that change with its pool and with its
        questions.
        """
        own = self.get(name)
        # judgements are only added, and so is what a passage was found by: numbers and lengths tell a change
        counts = [
            tuple(self._row(f"SELECT {what} WHERE label_set = ?", own.name) or ())
            for what in (
                "max(number) FROM judgements",
                "count(*), sum(length(found)) FROM label_pool",
                "count(*), sum(length(question)) FROM label_questions",
            )
        ]
        newest, passages, ranks, asked, length = (number or 0 for row in counts for number in row)
        return own.guidelines, own.created, newest, passages, ranks, asked, length

    def create(self, fresh: LabelSet, questions: Iterable[Stored]) -> None:
        """Make a new set. Raises BadInput if its name is taken or there are too many sets."""
        row = self._row("SELECT deleted FROM label_sets WHERE name = ?", fresh.name)
        if row is not None:
            what = "was deleted; restore it or give another name" if row["deleted"] else "exists already"
            raise BadInput(f"label set {short(fresh.name)} {what}")
        (count,) = self._connection.execute("SELECT count(*) FROM label_sets").fetchone()
        if count >= MAX_SETS:
            raise BadInput(f"there are {count} label sets, and no more are allowed")
        self._connection.execute(
            "INSERT INTO label_sets (name, corpus, guidelines, counts, created) VALUES (?, ?, ?, ?, ?)",
            (*map(bind, (fresh.name, fresh.corpus, fresh.guidelines)), fresh.relevant_from, fresh.created),
        )
        self._connection.executemany(
            "INSERT INTO label_questions (label_set, id, place, question) VALUES (?, ?, ?, ?)",
            [(bind(fresh.name), bind(id), n, bind(dumps(known))) for n, (id, known) in enumerate(questions)],
        )

    def set_guidelines(self, name: str, guidelines: str) -> None:
        """Give annotators other guidelines."""
        own = bind(self.get(name).name)
        self._connection.execute(
            "UPDATE label_sets SET guidelines = ? WHERE name = ?", (bind(guidelines), own)
        )

    def set_deleted(self, name: str, deleted: bool) -> None:
        """Take a set off the list, or put it back."""
        own = bind(self.get(name, deleted=not deleted).name)
        self._connection.execute("UPDATE label_sets SET deleted = ? WHERE name = ?", (deleted, own))

    def keep_question(self, name: str, question: Stored) -> None:
        """Write a question of a set, replacing the question with its id or after all other questions."""
        own, id = bind(name), bind(question[0])
        self._connection.execute(
            "INSERT INTO label_questions (label_set, id, place, question) VALUES (?, ?, "
            "(SELECT coalesce(max(place), -1) + 1 FROM label_questions WHERE label_set = ?), ?) "
            "ON CONFLICT (label_set, id) DO UPDATE SET question = excluded.question",
            (own, id, own, bind(dumps(question[1]))),
        )

    def drop_question(self, name: str, question: str) -> None:
        """Remove a question with its passages and judgements, and a set that has no other question."""
        columns = {"judgements": "question", "label_pool": "question", "label_questions": "id"}
        for table, column in columns.items():
            self._connection.execute(
                f"DELETE FROM {table} WHERE label_set = ? AND {column} = ?", (bind(name), bind(question))
            )
        if self._row("SELECT 1 FROM label_questions WHERE label_set = ?", name) is None:
            self._connection.execute("DELETE FROM label_sets WHERE name = ?", (bind(name),))

    def add_to_pool(self, name: str, found: Mapping[str, Iterable[Pooled]]) -> int:
        """Add passages to what is to be judged of each question; return how many are new.

        A passage that is there keeps its text and the rank a route first gave it; routes that are new are
        added. Raises BadInput for a question that is not of the set.
        """
        own, new = self.get(name).name, 0
        for question, passages in found.items():
            self._check_question(own, question)
            for one in passages:
                passage = one.passage
                if not passage.id:
                    raise BadInput(f"a passage found for question {short(question)} has no id")
                row = self._pooled(own, question, passage.id)
                known = dict(parsed(row["found"])) if row is not None else {}
                merged = {**known, **{route: rank for route, rank in one.found if route not in known}}
                key = tuple(map(bind, (own, question, passage.id)))
                ranks = bind(dumps(list(merged.items())))
                if row is None:
                    hash = keep_text(self._connection, passage.text)
                    place = (bind(passage.doc_id), passage.start, passage.end, bind(passage.title))
                    self._connection.execute(
                        'INSERT INTO label_pool (label_set, question, passage, doc_id, start, "end", title, '
                        "text, found) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (*key, *place, hash, ranks),
                    )
                    new += 1
                elif merged != known:
                    self._connection.execute(
                        "UPDATE label_pool SET found = ? "
                        "WHERE label_set = ? AND question = ? AND passage = ?",
                        (ranks, *key),
                    )
        return new

    def judge(self, name: str, judgements: Sequence[Judgement]) -> list[int]:
        """Add checked judgements; return their numbers. BadInput for a passage that is not in the pool."""
        own = self.get(name).name
        numbers = []
        for one in judgements:
            self._check_question(own, one.question)
            if one.kind not in PREFERENCES and self._pooled(own, one.question, one.passage) is None:
                raise BadInput(
                    f"passage {short(one.passage)} was not found for question {short(one.question)} "
                    f"of label set {short(own)}; add it to the pool first"
                )
            numbers.append(self._keep(own, one))
        return numbers

    def _keep(self, name: str, one: Judgement) -> int:
        said = (one.question, one.passage, one.annotator, one.source, one.kind, one.grade, one.note)
        row = self._connection.execute(
            "INSERT INTO judgements (label_set, question, passage, annotator, source, kind, grade, note, "
            "created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (*map(bind, (name, *said)), one.created or now()),
        ).fetchone()
        return int(row["number"])

    def take_back(self, name: str, annotator: str, *, preferences: bool = False) -> Judgement | None:
        """Withdraw the annotator's newest judgement of a passage (with `preferences`, of two routes) that is
        not taken back yet; None if nothing is left.
        """
        own = self.get(name).name
        stacks = standing([one for one in self.judgements(own) if one.annotator == annotator])
        tops = [stack[-1] for stack in stacks.values() if stack]
        some = [one for one in tops if (one.kind in PREFERENCES) == preferences]
        last = max(some, key=lambda one: one.number, default=None)
        if last is not None:
            self._keep(own, replace(last, kind="withdrawn", grade=None, note="", created=""))
        return last

    def run_deleted(self, run: str) -> bool:
        """Return whether a run was stored here and deleted."""
        row = self._row("SELECT deleted FROM runs WHERE id = ?", run)
        return row is not None and bool(row["deleted"])

    def _row(self, sql: str, *values: str) -> sqlite3.Row | None:
        found: sqlite3.Row | None = self._connection.execute(sql, tuple(map(bind, values))).fetchone()
        return found

    def _pooled(self, name: str, question: str, passage: str) -> sqlite3.Row | None:
        sql = "SELECT found FROM label_pool WHERE label_set = ? AND question = ? AND passage = ?"
        return self._row(sql, name, question, passage)

    def _check_question(self, name: str, question: str) -> None:
        sql = "SELECT 1 FROM label_questions WHERE label_set = ? AND id = ?"
        if self._row(sql, name, question) is None:
            raise BadInput(f"label set {short(name)} has no question {short(question)}")


def standing(judgements: Iterable[Judgement]) -> dict[tuple[str, str, str, bool], list[Judgement]]:
    """Return the judgements that were not taken back, oldest first, by question, passage, annotator and
    whether it is an adjudication. `judgements` are given oldest first.
    """
    stacks: dict[tuple[str, str, str, bool], list[Judgement]] = {}
    for one in judgements:
        stack = stacks.setdefault((*one.pair, one.annotator, one.source == "adjudication"), [])
        if one.kind != "withdrawn":
            stack.append(one)
        elif stack:
            stack.pop()
    return stacks


def now() -> str:
    """Return the current time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _set(row: sqlite3.Row) -> LabelSet:
    name, corpus, guidelines = (text(row[column]) for column in ("name", "corpus", "guidelines"))
    return LabelSet(name, corpus, guidelines, row["counts"], row["created"])
