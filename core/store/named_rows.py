"""Rows with a unique name (playlists and presets): kept, deleted, and brought back as long as they can be."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Any

from core.domain.errors import BadInput
from core.store import steady_clock
from core.store.codec import dumps
from core.store.rows import bind, parsed, text
from core.store.run_annotations import MAX_TAG

TABLES: Mapping[str, str] = {"playlist": "playlists", "preset": "presets"}
MAX_ROWS = 1000  # of one kind


def clean_name(kind: str, name: str) -> str:
    """Trim a name. Raises BadInput unless it has 1 to 64 characters."""
    trimmed = " ".join(name.split()) if isinstance(name, str) else ""
    if not 1 <= len(trimmed) <= MAX_TAG:
        raise BadInput(f"{kind} {short(name)}: the name must have 1 to {MAX_TAG} characters")
    return trimmed


def rows(connection: sqlite3.Connection, kind: str) -> list[dict[str, Any]]:
    """Return all rows, by name."""
    found = connection.execute(f"SELECT * FROM {TABLES[kind]}").fetchall()
    every = [dict(zip(row.keys(), map(text, row), strict=True)) for row in found]
    return sorted(every, key=lambda one: (one["name"].casefold(), one["name"]))


def put(connection: sqlite3.Connection, kind: str, row: Mapping[str, Any]) -> None:
    """Write a row, replacing the one of its name. Raises BadInput if there are too many."""
    table, name = TABLES[kind], bind(row["name"])
    (others,) = connection.execute(f"SELECT count(*) FROM {table} WHERE name <> ?", (name,)).fetchone()
    if others >= MAX_ROWS:
        raise BadInput(f"there are {others} {table}, which is the limit; delete one first")
    connection.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
    _insert(connection, table, {**row, "changed": datetime.now(UTC).isoformat(timespec="milliseconds")})


def remove(connection: sqlite3.Connection, kind: str, name: str) -> None:
    """Delete the row of that name and keep its content. Raises BadInput if it does not exist."""
    content = next((row for row in rows(connection, kind) if row["name"] == name), None)
    if content is None:
        raise BadInput(f"there is no {kind} {short(name)}")
    gone = {"kind": kind, "name": name, "at": steady_clock.now(), "content": dumps(content)}
    _insert(connection, "trash", gone)
    connection.execute(f"DELETE FROM {TABLES[kind]} WHERE name = ?", (bind(name),))


def restore(connection: sqlite3.Connection, kind: str, name: str) -> None:
    """Bring back the row that was deleted last under that name.

    Raises BadInput if none can be brought back, or if the name is in use again.
    """
    if any(row["name"] == name for row in rows(connection, kind)):
        raise BadInput(f"a {kind} {short(name)} exists; delete that one first")
    row = connection.execute(
        "SELECT number, content FROM trash WHERE kind = ? AND name = ? ORDER BY number DESC LIMIT 1",
        (kind, bind(name)),
    ).fetchone()
    if row is None:
        known = ", ".join(deleted(connection, kind))
        raise BadInput(f"no deleted {kind} {short(name)} can be restored; there are: {known or 'none'}")
    _insert(connection, TABLES[kind], parsed(row["content"]))
    connection.execute("DELETE FROM trash WHERE number = ?", (row["number"],))


def deleted(connection: sqlite3.Connection, kind: str) -> list[str]:
    """Return the names of what can be brought back, the one deleted last first."""
    found = connection.execute("SELECT name FROM trash WHERE kind = ? ORDER BY number DESC", (kind,))
    return list(dict.fromkeys(text(row["name"]) for row in found.fetchall()))


def empty_trash(connection: sqlite3.Connection, until: float) -> int:
    """Delete for good what was deleted at `until` (seconds since 1970) or before; return how many rows."""
    return int(connection.execute("DELETE FROM trash WHERE at <= ?", (until,)).rowcount)


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    values = [bind(value) for value in row.values()]
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values)
