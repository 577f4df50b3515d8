"""The memory of conversations: turns of named sessions, which can be deleted for good."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from reprlib import repr as short

from core.domain.errors import BadInput
from core.domain.people import MACHINE, Person
from core.domain.types import Remembered, Turn
from core.store.rows import bind, text

MAX_TURNS = 500  # of one session
MAX_TEXT = 20_000  # characters of one turn
_NAME = re.compile(r"[\w.-]{1,80}")


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One line of the list of remembered sessions; `last` is when its newest turn was said, ISO 8601, UTC."""

    session: str
    turns: int
    last: str


def check_session(name: str) -> str:
    """Check the name of a session. Raises BadInput unless it is 1 to 80 letters, digits, dashes, underscores
    or dots.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"session {short(name)}: use 1 to 80 letters, digits, dashes, underscores or dots")
    return name


def check_turns(turns: Sequence[Turn], run: str) -> None:
    """BadInput for a turn that cannot be remembered, and for two of one role in a run."""
    if run and len({turn.role for turn in turns}) < len(turns):
        raise BadInput(
            f"{len(turns)} turns of run {short(run)}: at most one question and one answer are allowed"
        )
    for turn in turns:
        if turn.role not in ("user", "assistant"):
            raise BadInput(f"a turn of {short(turn.role)}: the role is user or assistant")
        if not turn.text.strip() or len(turn.text) > MAX_TEXT:
            raise BadInput(
                f"a turn of {len(turn.text):,} characters: 1 to {MAX_TEXT:,} are allowed, and not only blanks"
            )


def check_owner(connection: sqlite3.Connection, session: str, who: Person) -> None:
    """BadInput where a session is another person's: what was said in it is theirs alone."""
    row = connection.execute("SELECT maker FROM memories WHERE session = ?", (session,)).fetchone()
    if row is not None and who.account and text(row[0]) != who.account:
        raise BadInput(f"session {short(session)} is another person's; use another name")


def add(
    connection: sqlite3.Connection, session: str, turns: Sequence[Turn], run: str, who: Person = MACHINE
) -> int:
    """Append turns to a session; how many were new. Of one run each role is remembered once. A new session
    is `who`'s.
    """
    check_owner(connection, session, who)
    row = connection.execute("SELECT last FROM memories WHERE session = ?", (session,)).fetchone()
    number = row[0] if row else 0
    held = connection.execute("SELECT count(*) FROM memory WHERE session = ?", (session,)).fetchone()[0]
    said = {
        role
        for (role,) in connection.execute(
            "SELECT role FROM memory WHERE session = ? AND run = ? AND run <> ''", (session, bind(run))
        )
    }
    new = [turn for turn in turns if turn.role not in said]
    if not new:
        return 0
    if held + len(new) > MAX_TURNS:
        raise BadInput(
            f"session {session!r} remembers {held} turns, and at most {MAX_TURNS} are allowed; "
            "delete some, or use another name"
        )
    connection.execute(
        "INSERT INTO memories (session, last, maker) VALUES (?, ?, ?) "
        "ON CONFLICT (session) DO UPDATE SET last = excluded.last",
        (session, number + len(new), bind(who.account)),
    )
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    connection.executemany(
        "INSERT INTO memory (session, number, run, role, text, created) VALUES (?, ?, ?, ?, ?, ?)",
        [(session, n, bind(run), turn.role, bind(turn.text), now) for n, turn in enumerate(new, number + 1)],
    )
    return len(new)


def read(connection: sqlite3.Connection, session: str) -> tuple[Remembered, ...]:
    """Return the turns of a session, oldest first; () if it is unknown."""
    rows = connection.execute(
        "SELECT session, number, role, text, created, run FROM memory WHERE session = ? ORDER BY number",
        (session,),
    )
    return tuple(
        Remembered(r["session"], r["number"], r["role"], text(r["text"]), r["created"], text(r["run"]))
        for r in rows
    )


def sessions(connection: sqlite3.Connection, who: Person = MACHINE) -> tuple[MemoryRow, ...]:
    """Every session of which something is remembered, or `who`'s alone; the one spoken in last first."""
    rows = connection.execute(
        "SELECT session, count(*), max(created) AS last FROM memory "
        "WHERE ? = '' OR session IN (SELECT session FROM memories WHERE maker = ?) "
        "GROUP BY session ORDER BY last DESC, session",
        (who.account, bind(who.account)),
    )
    return tuple(MemoryRow(*row) for row in rows)


def remove(connection: sqlite3.Connection, session: str, numbers: Collection[int] | None) -> int:
    """Delete these turns, or all, and overwrite where they stood; how many. BadInput if one is not there."""
    held = {n for (n,) in connection.execute("SELECT number FROM memory WHERE session = ?", (session,))}
    if not held:
        raise BadInput(f"session {session!r} has no remembered turns")
    gone = held if numbers is None else set(numbers)
    if missing := sorted(gone - held):
        raise BadInput(
            f"session {session!r} has no turn {missing[0]}; it has: {', '.join(map(str, sorted(held)))}"
        )
    connection.executemany(
        "DELETE FROM memory WHERE session = ? AND number = ?", [(session, number) for number in gone]
    )
    if gone == held:
        connection.execute("DELETE FROM memories WHERE session = ?", (session,))
    return len(gone)
