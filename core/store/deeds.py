"""The log of actions, one line each and append-only, and each person's model tokens by day."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime

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
