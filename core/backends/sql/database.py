"""A database that can only be read: its tables, and guarded queries, each in a process that can be killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.backends.sql.guard import QueryLimits, SqlError, SqlFailed, SqlRejected, TooSlow
from core.backends.sql.worker import Workers
from core.domain.errors import Unavailable

Value = str | int | float | None
Ask = Callable[..., tuple[tuple[Value, ...], ...]]  # see `Database.within`
SCHEMA_S = 10.0  # for reading the schema: views of views can make that as long as one likes
SCHEMA_BYTES = 16 << 20
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
        self._workers = Workers(source)
        try:
            found = self._workers.ask({"do": "schema"}, seconds=SCHEMA_S, most=SCHEMA_BYTES)
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
        found = self._workers.ask(request, seconds=limits.seconds, most=most, cancelled=cancelled)
        if "error" in found:
            kind, text = found["error"]
            raise _ERRORS[kind](text)
        if "unreadable" in found:
            raise SqlFailed(found["unreadable"])
        return found
