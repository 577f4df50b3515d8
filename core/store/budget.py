"""The model tokens of each person by day: those used, and those that calls under way may still use."""

from __future__ import annotations

import secrets
import sqlite3
import time
from datetime import UTC, datetime

from core.store.process_liveness import alive, me
from core.store.rows import bind, text


def today() -> str:
    """Return the day that tokens are counted for, ISO 8601, UTC."""
    return datetime.now(UTC).date().isoformat()


def reserve(connection: sqlite3.Connection, who: str, tokens: int, limit: int) -> tuple[str, int]:
    """Reserve `tokens` of a person's day for a call, so that simultaneous calls together stay within `limit`.

    Return the reservation's id, "" if the call may not begin now, and the tokens used today. Like calls one
    after the other, a call that is alone may begin as long as less than `limit` is used. Reservations of
    processes that ended are deleted.
    """
    held, dead = 0, []
    for row in connection.execute("SELECT * FROM reserved WHERE who = ?", (bind(who),)).fetchall():
        if alive(*(row[column] for column in ("host", "pid", "born", "saved", "boot"))):
            held += int(row["tokens"])
        else:
            dead.append((row["id"],))
    for id_ in dead:
        connection.execute("DELETE FROM reserved WHERE id = ?", id_)
    used = spent(connection, today()).get(who, 0)
    if used >= limit or (held and used + held + tokens > limit):
        return "", used
    id, owner = secrets.token_hex(8), me()
    connection.execute(
        "INSERT INTO reserved (id, who, tokens, host, pid, born, boot, saved) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (id, bind(who), tokens, owner.host, owner.pid, owner.born, owner.boot, time.time()),
    )
    return id, used


def settle(connection: sqlite3.Connection, id: str, who: str, tokens: int) -> None:
    """Count the `tokens` that a call used, instead of those it had reserved."""
    connection.execute("DELETE FROM reserved WHERE id = ?", (id,))
    spend(connection, today(), who, tokens)


def spend(connection: sqlite3.Connection, day: str, who: str, tokens: int) -> None:
    """Add to the tokens a person used on a day."""
    connection.execute(
        "INSERT INTO spent (day, who, tokens) VALUES (?, ?, ?) "
        "ON CONFLICT (day, who) DO UPDATE SET tokens = spent.tokens + excluded.tokens",
        (day, bind(who), tokens),
    )


def spent(connection: sqlite3.Connection, day: str) -> dict[str, int]:
    """Return the tokens used on a day by person."""
    found = connection.execute("SELECT who, tokens FROM spent WHERE day = ?", (day,))
    return {text(row["who"]): int(row["tokens"]) for row in found}
