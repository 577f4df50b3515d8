"""Lists, searches and counts runs, and tells how long each route took lately."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from reprlib import repr as short
from statistics import median
from typing import Any

from core.errors import BadInput
from core.store.owner import status_now
from core.store.rows import bind, parsed, text

RECENT = 20  # results of a route that its median time is of
MAX_WORDS = 32  # words of a search that count
_COLUMNS = (
    "r.id, r.created, (SELECT text FROM texts WHERE hash = r.question) AS question, r.corpus, r.routes, "
    "r.status, r.wall_ms, r.tags, r.note, r.host, r.pid, r.born, r.saved"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of the list of runs; `created` is ISO 8601 in UTC, `wall_ms` milliseconds."""

    id: str
    created: str
    question: str
    corpus: str
    routes: tuple[str, ...]
    status: str
    wall_ms: float
    tags: tuple[str, ...]
    note: str


def sessions(
    connection: sqlite3.Connection, *, search: str, corpus: str | None, before: str | None, limit: int
) -> list[SessionRow]:
    """The newest runs first; `before` is the id of the last one of the page above. BadInput if unknown."""
    if limit < 1:
        raise BadInput(f"limit={limit}: give 1 or more")
    where, values = _filter(search, corpus)
    if before is not None:
        at = connection.execute("SELECT created, id FROM runs WHERE id = ?", (bind(before),)).fetchone()
        if at is None:
            raise BadInput(f"before={short(before)}: there is no such run")
        where += " AND (r.created, r.id) < (?, ?)"
        values += at
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM runs r WHERE {where} ORDER BY r.created DESC, r.id DESC LIMIT ?",
        (*values, limit),
    )
    return [_session(row) for row in rows]


def session(connection: sqlite3.Connection, number: int) -> SessionRow:
    """One run's line by its row."""
    return _session(
        connection.execute(f"SELECT {_COLUMNS} FROM runs r WHERE r.number = ?", (number,)).fetchone()
    )


def count(connection: sqlite3.Connection, *, search: str, corpus: str | None) -> int:
    """How many runs `sessions` would list."""
    where, values = _filter(search, corpus)
    return int(connection.execute(f"SELECT count(*) FROM runs r WHERE {where}", values).fetchone()[0])


def route_history(connection: sqlite3.Connection, corpus: str) -> dict[str, float]:
    """Each route's median milliseconds over its recent results that went well here on this corpus."""
    routes = connection.execute(
        """WITH RECURSIVE names(route) AS (
            SELECT min(route) FROM results WHERE measured_on = :corpus AND status = 'ok'
            UNION ALL
            SELECT (SELECT min(route) FROM results
                    WHERE measured_on = :corpus AND status = 'ok' AND route > names.route)
            FROM names WHERE names.route IS NOT NULL)
        SELECT route FROM names WHERE route IS NOT NULL""",
        {"corpus": bind(corpus)},
    ).fetchall()
    recent = (
        "SELECT ms FROM results WHERE measured_on = ? AND route = ? AND status = 'ok' "
        "ORDER BY run DESC LIMIT ?"
    )
    return {
        text(route): median(float(ms) for (ms,) in connection.execute(recent, (bind(corpus), route, RECENT)))
        for (route,) in routes
    }


def index(
    connection: sqlite3.Connection,
    number: int,
    question: str,
    answers: str,
    routes: str,
    tags: str,
    note: str,
) -> None:
    """Make a run findable by these texts, and by no older ones."""
    connection.execute("DELETE FROM search WHERE rowid = ?", (number,))
    connection.execute(
        "INSERT INTO search (rowid, question, answers, routes, tags, note) VALUES (?, ?, ?, ?, ?, ?)",
        (number, *map(plain, (question, answers, routes, tags, note))),
    )


def plain(text: str) -> str:
    """Text the index can hold: no NUL, no lone surrogate."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def match(search: str) -> str | None:
    """An FTS5 query for runs that have every word, each as the beginning of one; None if there is no word.

    Each word is a quoted string, in which nothing is an operator.
    """
    words = [w for w in plain(search).split() if any(char.isalnum() for char in w)][:MAX_WORDS]
    return " ".join('"' + word.replace('"', '""') + '"*' for word in words) or None


def _filter(search: str, corpus: str | None) -> tuple[str, list[Any]]:
    """WHERE and values for the runs that are not deleted and fit."""
    where, values = "NOT r.deleted", list[Any]()
    if corpus is not None:
        where += " AND r.corpus = ?"
        values.append(bind(corpus))
    words = match(search)
    if words is not None:
        where += " AND r.number IN (SELECT rowid FROM search WHERE search MATCH ?)"
        values.append(words)
    elif search.strip():  # signs alone, which the index does not hold: look for them in the questions
        where += " AND (SELECT instr(text, ?) FROM texts WHERE hash = r.question) > 0"
        values.append(plain(search.strip()))
    return where, values


def _session(row: sqlite3.Row) -> SessionRow:
    return SessionRow(
        text(row["id"]),
        text(row["created"]),
        text(row["question"]),
        text(row["corpus"]),
        tuple(parsed(row["routes"])),
        status_now(row),
        float(row["wall_ms"]),
        tuple(parsed(row["tags"])),
        text(row["note"]),
    )
