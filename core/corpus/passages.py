"""The passages of an index in one SQLite file: quick to open and to read from at any size."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.corpus.chunk import Chunking, made
from core.corpus.metadata import HEAD
from core.corpus.types import Cut, Document
from core.domain.errors import IndexDamaged
from core.domain.once import Recent
from core.domain.text import searchable
from core.domain.types import Passage

SCHEMA = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, text TEXT, meta TEXT NOT NULL
);
CREATE TABLE passages (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL, document INTEGER NOT NULL,
    start INTEGER NOT NULL, end INTEGER NOT NULL, text TEXT NOT NULL
);
"""
INDEXES = """
CREATE UNIQUE INDEX passages_by_id ON passages (id);
CREATE INDEX passages_by_document ON passages (document, start);
CREATE UNIQUE INDEX documents_by_id ON documents (id);
"""
COLUMNS = "p.row, p.id, d.id, d.title, p.text, p.start, p.end"
FROM = "FROM passages p JOIN documents d ON d.number = p.document"
AT_ONCE = 500  # values in one query
KEPT = 10_000  # passages read lately: some 10 MB
IDLE = 8  # connections kept open for the next ones who read


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: how many passages it has, and how many characters they reach to."""

    id: str
    title: str
    passages: int
    characters: int


def write(documents: Iterable[Cut], chunking: Chunking, file: Path) -> tuple[int, int, str]:
    """Store the passages of `documents`, which were cut as `chunking` says, rows sorted by passage id.

    Returns the number of documents, the number of passages and a digest of all content.
    """
    staging = file.with_suffix(".staging")
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        # The file is worth nothing before it is finished and hashed, so it needs no journal.
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
        connection.execute("ATTACH ? AS staging", (str(staging),))
        connection.execute("PRAGMA staging.journal_mode = OFF")
        connection.execute(
            "CREATE TABLE staging.cut (id TEXT, document INTEGER, start INTEGER, end INTEGER, text TEXT)"
        )
        connection.execute("BEGIN")
        digests = []
        for number, cut in enumerate(documents):
            document = cut.document
            parts = [document.id, document.title, document.text, sorted(document.meta.items())]
            digests.append(hashlib.sha256(json.dumps(parts).encode()).digest())
            pieces = made(document, cut.spans, chunking)
            text = document.text if chunking.size else None  # else the passage has it
            meta = json.dumps(dict(document.meta), ensure_ascii=False)
            row = (number, document.id, document.title, text, meta)
            connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", row)
            rows = [(piece.id, number, piece.start, piece.end, piece.text) for piece in pieces]
            connection.executemany("INSERT INTO staging.cut VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute(
            "INSERT INTO passages SELECT row_number() OVER (ORDER BY id) - 1, id, document, start, end, text"
            " FROM staging.cut ORDER BY id"
        )
        connection.execute("COMMIT")
        connection.execute("DETACH staging")
        connection.executescript(INDEXES)
        (count,) = connection.execute("SELECT count(*) FROM passages").fetchone()
    finally:
        connection.close()
        staging.unlink(missing_ok=True)
    return len(digests), count, hashlib.sha256(b"".join(sorted(digests))).hexdigest()


class Stored(Protocol):
    """The passages of an index, in a file or a database; those read lately are kept. Safe in threads."""

    _passages: Recent[int, Passage]  # by row
    _rows: Recent[str, int]  # by id

    def close(self) -> None: ...

    def document(self, id: str) -> tuple[Document, list[Passage]] | None: ...

    def spanning(self, document: str, start: int, end: int) -> list[Passage]: ...

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]: ...

    def whole(self) -> Iterator[tuple[Document, list[Passage]]]:
        """Yield every document with its passages in order, by id. Raises IndexDamaged if one goes missing."""
        after = ""
        while listed := self.documents(after=after, limit=AT_ONCE):
            for one in listed:
                if (found := self.document(one.id)) is None:
                    raise IndexDamaged(f"document {one.id!r} went missing while all were read")
                yield found
            after = listed[-1].id

    def lengths(self) -> tuple[int, float, int]: ...

    def heads(self) -> Iterator[tuple[str, Mapping[str, str], str]]: ...

    def owners(self) -> NDArray[np.int64]: ...

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]: ...

    def size(self) -> tuple[int, int]: ...

    def _read(self, by: Literal["row", "id"], values: Sequence[Any]) -> Iterable[tuple[int, Passage]]: ...

    def at(self, rows: Sequence[int]) -> dict[int, Passage]:
        """Return the passages of `rows` by row."""
        found = {row: passage for row in rows if (passage := self._passages.get(row)) is not None}
        return found | dict(self._kept("row", [row for row in rows if row not in found]))

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Return the passages of `ids` by id; unknown ones are omitted."""
        return {passage.id: passage for passage in self.at(self.rows_of(ids)).values()}

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Return the rows of `ids`, without those of unknown ids."""
        known = {id: row for id in ids if (row := self._rows.get(id)) is not None}
        others = self._kept("id", [id for id in ids if id not in known])
        known |= {passage.id: row for row, passage in others}
        return [known[id] for id in ids if id in known]

    def row(self, id: str) -> int | None:
        """Return the row of a passage, or None if the id is unknown."""
        return next(iter(self.rows_of([id])), None)

    def texts(self) -> Iterator[str]:
        """Yield the searched text of each passage, in the order of rows."""
        return (searchable(passage.title, passage.text) for _, passage, _ in self.everything())

    def texts_at(self, rows: Sequence[int]) -> list[str]:
        """Return the searched texts of the passages of `rows`."""
        found = self.at(rows)
        return [searchable(found[row].title, found[row].text) for row in rows]

    def _kept(self, by: Literal["row", "id"], values: Sequence[Any]) -> Iterator[tuple[int, Passage]]:
        """Read passages, AT_ONCE at a time, and keep them."""
        for start in range(0, len(values), AT_ONCE):
            for row, passage in self._read(by, values[start : start + AT_ONCE]):
                self._passages[row] = passage
                self._rows[passage.id] = row
                yield row, passage


class PassageStore(Stored):
    """Reads a file that `write` made; safe to call from several threads, each of which has a connection to
    itself: one connection serves one after the other. Passages read lately are kept.
    """

    def __init__(self, file: Path) -> None:
        self._uri = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        self._idle = [self._connect()]
        self._passages: Recent[int, Passage] = Recent(KEPT)
        self._rows: Recent[str, int] = Recent(KEPT)

    def close(self) -> None:
        """Let go of the file."""
        while self._idle:
            self._idle.pop().close()

    def document(self, id: str) -> tuple[Document, list[Passage]] | None:
        """Return a document with its passages in order, or None if the id is unknown."""
        with self._reading() as db:
            query = "SELECT number, title, text, meta FROM documents WHERE id = ?"
            if (head := db.execute(query, (id,)).fetchone()) is None:
                return None
            number, title, text, meta = head
            query = f"SELECT {COLUMNS} {FROM} WHERE p.document = ? ORDER BY p.start"
            pieces = [Passage(*found[1:]) for found in db.execute(query, (number,))]
        return Document(id, title, pieces[0].text if text is None else text, json.loads(meta)), pieces

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passages of a document with characters in [start, end), in order."""
        query = f"SELECT {COLUMNS} {FROM} WHERE d.id = ? AND p.start < ? AND p.end > ? ORDER BY p.start"
        with self._reading() as db:
            return [Passage(*found[1:]) for found in db.execute(query, (document, end, start))]

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        sought = "%" + re.sub(r"([\\%_])", r"\\\1", holding.strip()) + "%"
        query = (
            "SELECT d.id, d.title, (SELECT count(*) FROM passages p WHERE p.document = d.number),"
            " (SELECT max(p.end) FROM passages p WHERE p.document = d.number) FROM documents d"
            " WHERE d.id > ? AND (d.id LIKE ? ESCAPE '\\' OR d.title LIKE ? ESCAPE '\\')"
            " ORDER BY d.id LIMIT ?"
        )
        with self._reading() as db:
            return [Listed(*found) for found in db.execute(query, (after, sought, sought, limit))]

    def lengths(self) -> tuple[int, float, int]:
        """Return the minimum, mean and maximum length of a passage in characters; zeros without passages."""
        found: tuple[int, float, int] = self._one(
            "SELECT coalesce(min(end - start), 0), coalesce(avg(end - start), 0.0),"
            " coalesce(max(end - start), 0) FROM passages"
        )
        return found

    def heads(self) -> Iterator[tuple[str, Mapping[str, str], str]]:
        """Each document's id, metadata and the start of its text, in the order of their numbers."""
        text = "coalesce(d.text, (SELECT p.text FROM passages p WHERE p.document = d.number LIMIT 1), '')"
        query = f"SELECT d.id, d.meta, substr({text}, 1, {HEAD}) FROM documents d ORDER BY d.number"
        with self._reading() as db:
            for id, meta, start in db.execute(query):
                yield id, json.loads(meta), start

    def owners(self) -> NDArray[np.int64]:
        """Return the number of each passage's document, in the order of rows."""
        with self._reading() as db:
            found = db.execute("SELECT document FROM passages ORDER BY row")
            return np.fromiter((number for (number,) in found), np.int64)

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        """Every row with its passage and its document's metadata, in the order of rows."""
        with self._reading() as db:
            for *found, meta in db.execute(f"SELECT {COLUMNS}, d.meta {FROM} ORDER BY p.row"):
                yield found[0], Passage(*found[1:]), json.loads(meta)

    def size(self) -> tuple[int, int]:
        """Return the number of passages, and the bytes (UTF-8) of their texts and titles."""
        bytes_ = "coalesce(sum(length(CAST(d.title AS BLOB)) + 1 + length(CAST(p.text AS BLOB))), 0)"
        found: tuple[int, int] = self._one(f"SELECT count(*), {bytes_} {FROM}")
        return found

    def _one(self, query: str, *values: object) -> Any:
        with self._reading() as db:
            return db.execute(query, values).fetchone()

    def _read(self, by: Literal["row", "id"], values: Sequence[Any]) -> list[tuple[int, Passage]]:
        marks = ",".join("?" * len(values))
        with self._reading() as db:
            found = db.execute(f"SELECT {COLUMNS} {FROM} WHERE p.{by} IN ({marks})", values).fetchall()
        return [(row, Passage(*rest)) for row, *rest in found]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:  # all are in use
            connection = self._connect()
        try:
            yield connection
        finally:
            if len(self._idle) < IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._uri, uri=True, check_same_thread=False)
