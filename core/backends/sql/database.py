"""A database that can only be read: its tables, and guarded queries, each in a process that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.backends.pipes import LinePipes, ProcessGone
from core.backends.sql.guard import QueryLimits, SqlError, SqlFailed, SqlRejected, TooBig, TooSlow, too_slow
from core.domain import system
from core.domain.errors import Unavailable
from core.domain.program import PROJECT

Value = str | int | float | None
Ask = Callable[..., tuple[tuple[Value, ...], ...]]  # see `Database.within`
SCHEMA_S = 10.0  # for reading the schema: views of views can make that as long as one likes
SCHEMA_BYTES = 16 << 20
MAX_IDLE_PROCESSES = 2  # idle processes of one database
START_S = 30.0  # a process that says nothing for so long is given up
GRACE_S = 0.1  # a query that SQLite can interrupt ends by itself, and its process is kept
_KINDS: tuple[type[SqlError], ...] = (SqlFailed, *SqlRejected.__subclasses__())
_ERRORS = {kind.__name__: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its declared type; `key`: part of the primary key."""

    name: str
    type: str
    key: bool = False

    @property
    def textual(self) -> bool:
        """Return True if the column holds text by SQLite's rules of affinity (datatype3.html, section
        3.1).
        """
        upper = self.type.upper()
        return "INT" not in upper and any(sign in upper for sign in ("CHAR", "CLOB", "TEXT"))


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view: the statement that made it, its columns, and (own column, table, column) of its
    foreign keys.
    """

    name: str
    sql: str
    columns: tuple[Column, ...]
    keys: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: str = ""  # which part was cut off; "" if none


class Database:
    """One SQLite database, a file or the bytes of one; safe in threads."""

    def __init__(self, source: Path | bytes, name: str) -> None:
        """Read the schema. Raises Unavailable if it is no readable SQLite database."""
        self.name = name
        self.found: dict[Any, Any] = {}  # what others found out about it, by a key of theirs: it only is read
        self._source = source
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _end, self._idle)
        try:
            found = self._answer({"do": "schema"}, SCHEMA_S, SCHEMA_BYTES)
        except SqlError as error:
            raise Unavailable(f"{name} cannot be read as a SQLite database: its schema: {error}") from None
        if "unreadable" in found:
            raise Unavailable(f"{name} cannot be read as a SQLite database: {found['unreadable']}")
        self.tables = tuple(
            DatabaseTable(
                name,
                sql,
                tuple(Column(of, kind, bool(key)) for of, kind, key in columns),
                tuple(map(tuple, keys)),
            )
            for name, sql, columns, keys in found["tables"]
        )

    def table(self, name: str) -> DatabaseTable | None:
        """Return the table of that name, ignoring case, or None."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)

    def query(
        self,
        sql: str,
        values: Sequence[Value] = (),
        *,
        limits: QueryLimits | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Run one SELECT over this database's tables, with `values` for its question marks, and return its
        rows.

        Raises a `guard.Rejected` for a forbidden query, SqlFailed for one that SQLite cannot run, or once
        `cancelled` is true. Its process is then killed, as it is on timeout.
        """
        found = self._ask("query", sql, values, limits or QueryLimits(), cancelled)
        return Result(tuple(found["columns"]), tuple(map(tuple, found["rows"])), found["truncated"])

    def reads(self, sql: str, limits: QueryLimits | None = None) -> tuple[str, ...]:
        """Return the names of the tables a query reads, in the order of the schema; it is compiled, not
        run.
        """
        read = set(self._ask("reads", sql, (), limits or QueryLimits(), lambda: False)["read"])
        return tuple(table.name for table in self.tables if table.name.lower() in read)

    def within(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> Ask:
        """Return a function that runs a query and returns its rows, for queries that take `seconds` all
        together. It raises TooSlow once they are over.
        """
        end = time.monotonic() + seconds

        def ask(sql: str, values: Sequence[Value] = (), **limits: int) -> tuple[tuple[Value, ...], ...]:
            left = end - time.monotonic()
            if left <= 0:
                raise TooSlow(f"its {seconds:g} s were over")
            given = QueryLimits(seconds=left, **limits)
            return self.query(sql, values, limits=given, cancelled=cancelled).rows

        return ask

    def _ask(
        self, do: str, sql: str, values: Sequence[Value], limits: QueryLimits, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        request = {
            "do": do,
            "sql": sql,
            "values": list(values),
            "limits": asdict(limits),
            "tables": [table.name for table in self.tables],
        }
        most = 8 * limits.result + (4 << 20)  # a character takes up to six bytes, names of columns the rest
        found = self._answer(request, limits.seconds, most, cancelled)
        if "error" in found:
            kind, text = found["error"]
            raise _ERRORS[kind](text)
        if "unreadable" in found:
            raise SqlFailed(found["unreadable"])
        return found

    def _answer(
        self,
        request: Mapping[str, Any],
        seconds: float,
        most: int,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Return the answer of a process that only this query has, within `seconds` and `most` bytes.

        Raises TooSlow, TooBig, SqlFailed if the query was stopped or crashed its process, Unavailable if no
        process can be started.
        """
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            used = worker is not None  # it may have ended by itself, unused for long
            worker = worker or Worker(self._source, cancelled)
            try:
                found = worker.ask(request, seconds, most, cancelled)
            except ProcessGone:
                worker.kill()
                if not used:
                    raise SqlFailed("the query crashed the query process") from None
            except BaseException:
                worker.kill()
                raise
            else:
                with self._lock:
                    self._idle.append(worker)
                    ended = self._idle.pop(0) if len(self._idle) > MAX_IDLE_PROCESSES else None
                if ended:
                    ended.kill()
                return found


class Worker:
    """One process over a database."""

    def __init__(self, source: Path | bytes, cancelled: Callable[[], bool]) -> None:
        """Start it and wait until it takes requests; raises Unavailable, or SqlFailed when stopped."""
        command = [sys.executable, "-m", "core.backends.sql.child"]
        env = {name: os.environ[name] for name in system.NEEDED if name in os.environ}
        held = source if isinstance(source, bytes) else b""
        first = {"bytes": len(held)} if isinstance(source, bytes) else {"path": str(source.resolve())}
        try:
            self._pipes = LinePipes(command, cwd=PROJECT, env=env, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise Unavailable(f"cannot start the query process: {error}") from None
        self.kill = self._pipes.kill
        try:
            self._pipes.send(json.dumps(first).encode() + b"\n" + held)
            self._reply(START_S, 1_000, cancelled)
        except BaseException as error:
            self.kill()
            if isinstance(error, ProcessGone | TooBig | TimeoutError):
                why = "cannot start the query process: it ended or did not respond"
                raise Unavailable(why) from None
            raise

    def ask(
        self, request: Mapping[str, Any], seconds: float, most: int, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """Answer a request; after any exception the process must be killed."""
        self._pipes.send(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
        try:
            return self._reply(seconds + GRACE_S, most, cancelled)
        except TimeoutError:
            raise too_slow(seconds) from None

    def _reply(self, seconds: float, most: int, cancelled: Callable[[], bool]) -> dict[str, Any]:
        """Return the next line. Raises TimeoutError, ProcessGone, TooBig, and SqlFailed if stopped."""

        def check() -> None:
            if cancelled():
                raise SqlFailed("the query was stopped")

        too_long = TooBig(f"the result has more than {most} bytes")
        found: dict[str, Any] = json.loads(self._pipes.line(seconds, most, too_long, check))
        return found


def _end(idle: list[Worker]) -> None:
    for worker in idle:
        worker.kill()
