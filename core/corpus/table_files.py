"""Databases and CSV files: which hold tables, and what their tables say as documents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from core.backends.sql import Database, DatabaseTable
from core.backends.sql.csv_tables import header, load
from core.backends.sql.linking import examples
from core.corpus.columns import TEXT_COLUMNS
from core.corpus.folder import Listing, walk
from core.corpus.types import Document, LoadReport
from core.domain.errors import BadInput, Unavailable
from core.domain.text import composed

ENDINGS = (".sqlite", ".sqlite3", ".db")
TABLES = (".csv", ".tsv")
LOOK_AGAIN_S = 5.0  # a folder is looked at for new files no more often
QUESTIONS = "questions.jsonl"  # beside a database: labelled questions about it, not documents


EXAMPLES = 5  # values of a column in a table's document


def databases(path: Path) -> list[Path]:
    """Return the SQLite files at or below `path`, sorted."""
    return [file for file in _below(path, ENDINGS) if is_sqlite(file)]


def is_sqlite(file: Path) -> bool:
    """Return True if it starts like an SQLite file: other files end in .db, too."""
    try:
        with file.open("rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def data_files(path: Path) -> list[Path]:
    """Return the CSV files at or below `path` for SQL: those whose header names no text column.

    Their rows may be documents, too: a question and its answer can be searched and counted. A file without a
    header is excluded.
    """
    return [file for file in _below(path, (".csv",)) if is_data(file)]


def is_data(file: Path) -> bool:
    """Return True if SQL may query a CSV file, False if it cannot be read."""
    try:
        stat = file.stat()
        return _is_data(file, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return False


@lru_cache(200_000)
def _is_data(file: Path, _size: int, _changed: int) -> bool:
    """Read once for each state of the file: pages ask at each click."""
    try:
        return not set(header(file)) & set(TEXT_COLUMNS)
    except BadInput:
        return False


def _below(path: Path, endings: tuple[str, ...]) -> list[Path]:
    """Files by ending; hidden ones and links that lead out of `path` are left out."""
    if path.is_file():
        return [path] if path.suffix.lower() in endings else []
    return _listing(path, int(time.monotonic() / LOOK_AGAIN_S)).having(endings)


@lru_cache(64)
def _listing(root: Path, _moment: int) -> Listing:
    """Walk a folder once for each moment: pages ask at each click."""
    return walk(root)


def documents(file: Path, name: str, report: LoadReport) -> Iterator[Document]:
    """One document for each table of a database; what cannot be read goes to `report`."""
    try:
        database = Database(file, name)
    except (BadInput, Unavailable) as error:
        report.skip(name, str(error).removeprefix(f"{file}: "))
        return
    yield from _told(database, name)


def csv_documents(file: Path, name: str, report: LoadReport) -> Iterator[Document]:
    """One document about the table in a CSV file; what was changed goes to `report`. Raises BadInput."""
    database, notes = load([file], name)
    for note in notes:
        report.take(name, note.partition(": ")[2])
    yield from _told(database, name)


def _told(database: Database, name: str) -> Iterator[Document]:
    for table in database.tables:
        title, text = composed(table.name.replace("_", " ")), composed(described(database, table))
        yield Document(composed(f"{name}/{table.name}"), title, text)


def described(database: Database, table: DatabaseTable) -> str:
    """Describe a table: its columns with types and some values, and the targets of its keys."""
    lines = [f"Table {table.name} of {database.name}."]
    for column in table.columns:
        shown = examples(database, table, column.name, EXAMPLES)
        kind = f" ({column.type.lower()})" if column.type else ""
        lines.append(f"- {column.name}{kind}" + (f": {', '.join(shown)}" if shown else ""))
    lines += [f"{own} refers to {other} {column}".rstrip() + "." for own, other, column in table.keys]
    return "\n".join(lines)
