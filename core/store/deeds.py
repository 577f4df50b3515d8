"""The log of actions, one line each and append-only, and each person's model tokens by day."""

from __future__ import annotations

import secrets
import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from core.store.process_liveness import alive, me
from core.store.rows import bind, text

MAX_ABOUT = 300  # characters


@dataclass(frozen=True, slots=True)
class Done:
    """Something a person with an account did; `at` is ISO 8601, UTC, `about` what it was done to."""

    at: str
    who: str
    deed: str
    about: str


def add(connection: sqlite3.Connection, who: str, deed: str, about: str) -> None:
    """Keep one; nothing of who has no account."""
    if who:
        connection.execute(
            "INSERT INTO deeds (at, who, deed, about) VALUES (?, ?, ?, ?)",
            (datetime.now(UTC).isoformat(timespec="milliseconds"), bind(who), deed, bind(about[:MAX_ABOUT])),
        )


def listed(connection: sqlite3.Connection, limit: int) -> list[Done]:
    """List actions, the newest first."""
    found = connection.execute(
        "SELECT at, who, deed, about FROM deeds ORDER BY number DESC LIMIT ?", (limit,)
    )
    return [Done(row["at"], text(row["who"]), row["deed"], text(row["about"])) for row in found]


def first(connection: sqlite3.Connection, deed: str, about: str) -> str:
    """Return the account of who did it first to what has this name now: a deleted name may be used again.

    Of what is deleted it is who made that. "" if nobody with an account did.
    """
    kind = deed.rpartition(" ")[0]
    found = connection.execute(
        "SELECT who, deed FROM deeds WHERE about = ? AND deed IN (?, ?, ?) ORDER BY number",
        (bind(about[:MAX_ABOUT]), deed, f"{kind} deleted", f"{kind} restored"),
    )
    now = deleted = ""
    for row in found:
        if row["deed"] == deed:
            now = now or str(text(row["who"]))
        elif row["deed"].endswith("deleted"):
            now, deleted = "", now or deleted
        else:
            now = now or deleted
    return now or deleted


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
