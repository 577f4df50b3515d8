"""Lists, searches and counts of runs, the recent durations of routes, and the times of many runs at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from reprlib import repr as short
from statistics import median
from typing import Any, TypedDict

from core.domain import people
from core.domain.errors import BadInput
from core.domain.types import RouteResult, Span, Tokens
from core.store import postgres
from core.store.process_liveness import status_now
from core.store.rows import bind, parsed, text

RECENT = 20  # results of a route that its median time is of
MAX_WORDS = 32  # words of a search that count
_COLUMNS = (
    "r.id, r.created, (SELECT text FROM texts WHERE hash = r.question) AS question, r.corpus, r.routes, "
    "r.status, r.wall_ms, r.tags, r.note, r.maker, r.private, r.host, r.pid, r.born, r.saved, r.boot"
)


class Filters(TypedDict, total=False):
    """Conditions on runs. A missing or None one excludes nothing."""

    corpus: str | None
    route: str | None  # with a result of this route
    tag: str | None
    status: str | None
    since: date | None  # first day (UTC), inclusive
    until: date | None  # last day (UTC), inclusive
    source: str | None  # "trace": imported from another program's trace


@dataclass(frozen=True, slots=True)
class Choices:
    """The values of `Filters` among the runs that are not deleted, each sorted; days are ISO 8601 or ""."""

    corpora: tuple[str, ...]
    routes: tuple[str, ...]
    tags: tuple[str, ...]
    statuses: tuple[str, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of the list of runs."""

    id: str
    created: str  # ISO 8601, UTC
    question: str
    corpus: str
    routes: tuple[str, ...]
    status: str
    wall_ms: float  # milliseconds
    tags: tuple[str, ...]
    note: str
    maker: str = ""  # account of the person who asked; "" on the machine itself
    private: bool = False  # True if nobody else can see the run


def sessions(
    connection: sqlite3.Connection, *, search: str, only: Filters, before: str | None, limit: int
) -> list[SessionRow]:
    """List runs, newest first; `before` is the id of the last one of the page above. Raises BadInput if it is
    unknown.
    """
    if limit < 1:
        raise BadInput(f"limit={limit} must be 1 or more")
    where, values = _filter(connection, search, only)
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


def ids(connection: sqlite3.Connection, *, search: str, only: Filters) -> list[str]:
    """Return the ids of all runs that `sessions` would list, newest first."""
    where, values = _filter(connection, search, only)
    rows = connection.execute(
        f"SELECT r.id FROM runs r WHERE {where} ORDER BY r.created DESC, r.id DESC", values
    )
    return [text(id) for (id,) in rows]


def session(connection: sqlite3.Connection, number: int) -> SessionRow:
    """One run's line by its row."""
    return _session(
        connection.execute(f"SELECT {_COLUMNS} FROM runs r WHERE r.number = ?", (number,)).fetchone()
    )


def count(connection: sqlite3.Connection, *, search: str, only: Filters) -> int:
    """Count the runs that `sessions` would list."""
    where, values = _filter(connection, search, only)
    return int(connection.execute(f"SELECT count(*) FROM runs r WHERE {where}", values).fetchone()[0])


def choices(connection: sqlite3.Connection) -> Choices:
    """Return the values of `Filters` that match runs."""
    shown, values = visible(people.current())
    tagged = connection.execute(
        f"SELECT DISTINCT tags FROM runs WHERE deleted = 0 AND tags <> '[]' AND {shown}", values
    )
    tags = {tag for (tags,) in tagged for tag in parsed(tags)}
    listed = (
        "EXISTS (SELECT 1 FROM results x JOIN runs r ON r.number = x.run WHERE x.route = v AND r.deleted = 0)"
    )
    statuses = set(_distinct(connection, "status", "runs WHERE deleted = 0"))
    if "running" in statuses:
        statuses = (statuses - {"running"}) | {status_now(row) for row in _running(connection)}
    first, last = connection.execute(
        "SELECT min(created), max(created) FROM runs WHERE deleted = 0"
    ).fetchone()
    return Choices(
        tuple(_distinct(connection, "corpus", "runs WHERE deleted = 0")),
        tuple(_distinct(connection, "route", "results WHERE true", listed)),
        tuple(sorted(tags)),
        tuple(sorted(statuses)),
        text(first or "")[:10],
        text(last or "")[:10],
    )


def route_history(connection: sqlite3.Connection, corpus: str) -> dict[str, float]:
    """Each route's median milliseconds over its recent results that went well here on this corpus."""
    routes = connection.execute(
        """WITH RECURSIVE names(route) AS (
            SELECT min(route) FROM results WHERE measured_on = ? AND status = 'ok'
            UNION ALL
            SELECT (SELECT min(route) FROM results
                    WHERE measured_on = ? AND status = 'ok' AND route > names.route)
            FROM names WHERE names.route IS NOT NULL)
        SELECT route FROM names WHERE route IS NOT NULL""",
        [bind(corpus)] * 2,
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
        (number, *(indexed(connection, one) for one in (question, answers, routes, tags, note))),
    )


def indexed(connection: sqlite3.Connection, text: str) -> str:
    """Convert a text for the index of this store."""
    return postgres.words(text) if isinstance(connection, postgres.PostgresConnection) else plain(text)


def plain(text: str) -> str:
    """Text the index can hold: no NUL, no lone surrogate."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _sought(search: str) -> list[str]:
    return [w for w in plain(search).split() if any(char.isalnum() for char in w)][:MAX_WORDS]


def match(search: str) -> str | None:
    """Return an FTS5 query that matches every word as a prefix, or None without words.

    Each word is a quoted string, in which nothing is an operator.
    """
    return " ".join('"' + word.replace('"', '""') + '"*' for word in _sought(search)) or None


def visible(who: people.Person) -> tuple[str, list[Any]]:
    """Return WHERE and values for the runs that a person may see: all except other people's private ones."""
    if not who.may("look"):
        return "false", []
    return ("(private = 0 OR maker = ?)", [bind(who.account)]) if who.account else ("true", [])


def _filter(connection: sqlite3.Connection, search: str, only: Filters) -> tuple[str, list[Any]]:
    """Return WHERE and values for the matching runs that are not deleted."""
    parts: list[tuple[str, list[Any]]] = [("r.deleted = 0", []), visible(people.current())]
    given: Mapping[str, Any] = {name: value for name, value in only.items() if value is not None}
    served = isinstance(connection, postgres.PostgresConnection)
    for name, condition in (_CONDITIONS | (_SERVED if served else {})).items():
        if name in given:
            parts.append((condition, [_value(name, given[name])]))
    if "status" in given:
        # runs left running by an ended process are interrupted
        status = given["status"]
        numbers = [row["number"] for row in _running(connection) if status_now(row) == status]
        now = f"r.number IN ({', '.join('?' * len(numbers))})"
        if status == "running":
            parts.append((now, numbers))
        elif status == "interrupted":
            parts.append((f"(r.status = 'interrupted' OR {now})", numbers))
        else:
            parts.append(("r.status = ?", [bind(status)]))
    words = (postgres.query(_sought(search)) or None) if served else match(search)
    if words is not None:
        match_ = "words @@ ?::tsquery" if served else "search MATCH ?"
        parts.append((f"r.number IN (SELECT rowid FROM search WHERE {match_})", [words]))
    elif search.strip():  # signs alone, which the index does not hold: look for them in the questions
        signs = plain(search.strip())
        place = "strpos" if served else "instr"
        parts.append((f"(SELECT {place}(text, ?) FROM texts WHERE hash = r.question) > 0", [signs]))
    return " AND ".join(part for part, _ in parts), [value for _, values in parts for value in values]


_TAGS = "json_each(CAST(r.tags AS TEXT))"  # a BLOB, where a tag has a lone surrogate, is no JSON to SQLite
_CONDITIONS = {
    "corpus": "r.corpus = ?",
    "route": "EXISTS (SELECT 1 FROM results x WHERE x.run = r.number AND x.route = ?)",
    "tag": f"r.tags <> '[]' AND EXISTS (SELECT 1 FROM {_TAGS} WHERE CAST(value AS BLOB) = CAST(? AS BLOB))",
    "since": "r.created >= ?",
    "until": "r.created < ?",
    "source": "r.settings LIKE ?",
}
# as it stands in its list, where a NUL is \\u0000, which no text of PostgreSQL can hold
_SERVED = {"tag": "EXISTS (SELECT 1 FROM json_each(r.tags) WHERE value = to_json(?::text)::text)"}


def _value(name: str, given: Any) -> Any:
    """Convert a filter's value for SQLite: times are texts that sort, a day ends at the start of the next."""
    if name == "until":
        return (given + timedelta(days=1)).isoformat() if given < date.max else "9999-99"
    if name == "source":
        return f'%"source":"{given}"%'
    return given.isoformat() if name == "since" else bind(given)


def _running(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(
        "SELECT number, status, host, pid, born, saved, boot FROM runs "
        "WHERE status = 'running' AND deleted = 0"
    ).fetchall()


def _distinct(connection: sqlite3.Connection, column: str, source: str, which: str = "true") -> list[str]:
    """Return the values of an indexed column by jumping from one to the next instead of reading all rows."""
    rows = connection.execute(
        f"""WITH RECURSIVE found(v) AS (
            SELECT min({column}) FROM {source}
            UNION ALL
            SELECT (SELECT min({column}) FROM {source} AND {column} > found.v)
            FROM found WHERE found.v IS NOT NULL)
        SELECT v FROM found WHERE v IS NOT NULL AND {which}"""
    )
    return sorted(text(value) for (value,) in rows)


def _session(row: sqlite3.Row) -> SessionRow:
    told: dict[str, Any] = {
        **{name: text(row[name]) for name in ("id", "created", "question", "corpus", "note", "maker")},
        **{name: tuple(parsed(row[name])) for name in ("routes", "tags")},
        "status": status_now(row),
        "wall_ms": float(row["wall_ms"]),
        "private": bool(row["private"]),
    }
    return SessionRow(**told)


NEWEST = 200  # runs that are read at most, unless more are asked for
RESULTS = 2000  # results that are read at most, but those of one run at least: more take over half a second


# what is read of a span, with its tokens
BARE = "id parent name kind start_ms ms cost calls shared_with cached error"


@dataclass(frozen=True, slots=True)
class Traces:
    """The newest runs' results, newest run first; each span has its name, kind, place, time, tokens, and
    where its result is from, but neither arguments nor output nor hits. A result has its answer, but no
    ranking.

    `runs` of the `of` runs that there are were read, with `results` by run id. `elsewhere` counts results
    that were left out: imported ones were timed on another machine.
    """

    runs: int
    of: int
    results: Mapping[str, tuple[RouteResult, ...]]
    elsewhere: int


def read_traces(connection: sqlite3.Connection, corpus: str | None, limit: int) -> Traces:
    """Of the newest runs on `corpus` (None: on any) that are not deleted nor marked as under way, at most
    `limit` of them.
    """
    shown, values = visible(people.current())
    where = f"deleted = 0 AND status <> 'running' AND {shown}"
    if corpus is not None:
        where, values = f"{where} AND corpus = ?", [*values, bind(corpus)]
    of = int(connection.execute(f"SELECT count(*) FROM runs WHERE {where}", values).fetchone()[0])
    chosen: list[tuple[str, int]] = []  # ids and rows of the newest runs whose results can be read at once
    count = 0
    for row in connection.execute(
        f"SELECT id, number, routes FROM runs WHERE {where} ORDER BY created DESC, id DESC LIMIT ?",
        (*values, limit),
    ):
        count += len(parsed(row["routes"]))
        if chosen and count > RESULTS:
            break
        chosen.append((text(row["id"]), int(row["number"])))
    results: dict[str, list[RouteResult]] = {}
    elsewhere = 0
    for id, number in chosen:
        for row in connection.execute(
            "SELECT route, title, status, ms, answer, measured_on IS NOT NULL AS here, spans FROM results "
            "WHERE run = ? ORDER BY route, nth",
            (number,),
        ):
            if not row["here"]:
                elsewhere += 1
                continue
            route, title, status, answer = (text(row[one]) for one in ("route", "title", "status", "answer"))
            spans = tuple(map(_span, parsed(row["spans"])))
            result = RouteResult(route, title, status, float(row["ms"]), answer=answer, spans=spans)
            results.setdefault(id, []).append(result)
    return Traces(len(chosen), of, {id: tuple(some) for id, some in results.items()}, elsewhere)


def _span(given: Mapping[str, Any]) -> Span:
    bare = {name: given[name] for name in BARE.split() if name in given}
    tokens = given.get("tokens")
    return Span(**bare, tokens=None if tokens is None else Tokens(**tokens))
