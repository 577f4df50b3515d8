"""The passages of an index in one SQLite file: quick to open and to read from at any size."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.corpus.chunk import Chunking, long, made
from core.corpus.types import Cut, Document
from core.types import Passage

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


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: how many passages it has, and how many characters they reach to."""

    id: str
    title: str
    passages: int
    characters: int


def searchable(title: str, text: str) -> str:
    """What of a passage is searched, by words and by meaning: its document's title and its text."""
    return f"{title} {text}".strip()


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
            digests.append(_digest(document, chunking))
            pieces = made(document, cut.spans, chunking)
            text = document.text if chunking.size else None  # else the passage has it
            meta = json.dumps(dict(document.meta), ensure_ascii=False)
            connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
                (number, document.id, document.title, text, meta),
            )
            connection.executemany(
                "INSERT INTO staging.cut VALUES (?, ?, ?, ?, ?)",
                [(piece.id, number, piece.start, piece.end, piece.text) for piece in pieces],
            )
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


def _digest(document: Document, chunking: Chunking) -> bytes:
    """A hash of a document, and of how it was cut where earlier versions cut it in another way."""
    parts = [document.id, document.title, document.text, sorted(document.meta.items())]
    parts += ["windows"] if long(document.text, chunking) else []
    return hashlib.sha256(json.dumps(parts).encode()).digest()


class PassageStore:
    """Reads a file that `write` made; safe to call from several threads (SQLite serialises them)."""

    def __init__(self, file: Path) -> None:
        self._db = sqlite3.connect(
            f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def at(self, rows: Sequence[int]) -> dict[int, Passage]:
        """The passages of `rows` by row."""
        return {found[0]: Passage(*found[1:]) for found in self._where("p.row", rows)}

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of `ids` by id; unknown ones are left out."""
        return {found[1]: Passage(*found[1:]) for found in self._where("p.id", ids)}

    def row(self, id: str) -> int | None:
        """The row of a passage; None when there is none of that id."""
        found = self._db.execute("SELECT row FROM passages WHERE id = ?", (id,)).fetchone()
        return found[0] if found else None

    def document(self, id: str) -> tuple[Document, list[Passage]] | None:
        """A document with its passages in order; None when there is none of that id."""
        head = self._db.execute(
            "SELECT number, title, text, meta FROM documents WHERE id = ?", (id,)
        ).fetchone()
        if head is None:
            return None
        number, title, text, meta = head
        query = f"SELECT {COLUMNS} {FROM} WHERE p.document = ? ORDER BY p.start"
        pieces = [Passage(*found[1:]) for found in self._db.execute(query, (number,))]
        return Document(id, title, pieces[0].text if text is None else text, json.loads(meta)), pieces

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        sought = "%" + re.sub(r"([\\%_])", r"\\\1", holding.strip()) + "%"
        rows = self._db.execute(
            "SELECT d.id, d.title, (SELECT count(*) FROM passages p WHERE p.document = d.number),"
            " (SELECT max(p.end) FROM passages p WHERE p.document = d.number) FROM documents d"
            " WHERE d.id > ? AND (d.id LIKE ? ESCAPE '\\' OR d.title LIKE ? ESCAPE '\\')"
            " ORDER BY d.id LIMIT ?",
            (after, sought, sought, limit),
        )
        return [Listed(*found) for found in rows]

    def lengths(self) -> tuple[int, float, int]:
        """The least, the mean and the greatest length of a passage in characters; zeros without any."""
        found: tuple[int, float, int] = self._db.execute(
            "SELECT coalesce(min(end - start), 0), coalesce(avg(end - start), 0.0),"
            " coalesce(max(end - start), 0) FROM passages"
        ).fetchone()
        return found

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        """Every row with its passage and its document's metadata, in the order of rows."""
        for *found, meta in self._db.execute(f"SELECT {COLUMNS}, d.meta {FROM} ORDER BY p.row"):
            yield found[0], Passage(*found[1:]), json.loads(meta)

    def texts(self) -> Iterator[str]:
        """What is searched of each passage, in the order of rows."""
        for title, text in self._db.execute(f"SELECT d.title, p.text {FROM} ORDER BY p.row"):
            yield searchable(title, text)

    def texts_at(self, rows: Sequence[int]) -> list[str]:
        """What is searched of the passages of `rows`."""
        found = self.at(rows)
        return [searchable(found[row].title, found[row].text) for row in rows]

    def size(self) -> tuple[int, int]:
        """The number of passages, and the bytes (UTF-8) of their texts and titles."""
        found: tuple[int, int] = self._db.execute(
            "SELECT count(*), "
            f"coalesce(sum(length(CAST(d.title AS BLOB)) + 1 + length(CAST(p.text AS BLOB))), 0) {FROM}"
        ).fetchone()
        return found

    def _where(self, column: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(values), AT_ONCE):
            some = values[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            yield from self._db.execute(f"SELECT {COLUMNS} {FROM} WHERE {column} IN ({marks})", some)
