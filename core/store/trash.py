"""Playlists and presets that were deleted, as long as they can be brought back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from reprlib import repr as short

from core.domain.errors import BadInput
from core.store import steady_clock
from core.store.codec import dumps
from core.store.rows import bind, parsed, text

TABLES: Mapping[str, str] = {"playlist": "playlists", "preset": "presets"}  # rows with a unique name


def remove(connection: sqlite3.Connection, kind: str, name: str) -> None:
    """Delete the row of that name and keep its content. Raises BadInput if it does not exist."""
    row = connection.execute(f"SELECT * FROM {TABLES[kind]} WHERE name = ?", (bind(name),)).fetchone()
    if row is None:
        raise BadInput(f"there is no {kind} {short(name)}")
    content = dict(zip(row.keys(), map(text, row), strict=True))
    connection.execute(
        "INSERT INTO trash (kind, name, at, content) VALUES (?, ?, ?, ?)",
        (kind, bind(name), steady_clock.now(), bind(dumps(content))),
    )
    connection.execute(f"DELETE FROM {TABLES[kind]} WHERE name = ?", (bind(name),))


def restore(connection: sqlite3.Connection, kind: str, name: str) -> None:
    """Bring back the row that was deleted last under that name.

    Raises BadInput if none can be brought back, or if the name is in use again.
    """
    if connection.execute(f"SELECT 1 FROM {TABLES[kind]} WHERE name = ?", (bind(name),)).fetchone():
        raise BadInput(f"a {kind} {short(name)} exists; delete that one first")
    row = connection.execute(
        "SELECT number, content FROM trash WHERE kind = ? AND name = ? ORDER BY number DESC LIMIT 1",
        (kind, bind(name)),
    ).fetchone()
    if row is None:
        known = ", ".join(listed(connection, kind))
        raise BadInput(f"no deleted {kind} {short(name)} can be restored; there are: {known or 'none'}")
    content = parsed(row["content"])
    connection.execute(
        f"INSERT INTO {TABLES[kind]} ({', '.join(content)}) VALUES ({', '.join('?' * len(content))})",
        [bind(value) for value in content.values()],
    )
    connection.execute("DELETE FROM trash WHERE number = ?", (row["number"],))


def listed(connection: sqlite3.Connection, kind: str) -> list[str]:
    """Return the names of what can be brought back, the one deleted last first."""
    found = connection.execute("SELECT name FROM trash WHERE kind = ? ORDER BY number DESC", (kind,))
    return list(dict.fromkeys(text(row["name"]) for row in found.fetchall()))


def empty(connection: sqlite3.Connection, until: float) -> int:
    """Delete for good what was deleted at `until` (seconds since 1970) or before; return how many rows."""
    return int(connection.execute("DELETE FROM trash WHERE at <= ?", (until,)).rowcount)


def next_due(connection: sqlite3.Connection) -> float | None:
    """Return when the row that waits longest was deleted, in seconds since 1970; None if there is none."""
    found = connection.execute("SELECT min(at) FROM trash").fetchone()[0]
    return None if found is None else float(found)
