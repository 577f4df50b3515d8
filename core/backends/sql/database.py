"""A database that can only be read: its tables, and guarded queries on a connection of their own each."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.backends.sql.guard import Authorizer, Limits, SqlError, check_statement, limit, named_parts, told
from core.errors import Unavailable

Value = str | int | float | None
STEPS = 500  # of SQLite's virtual machine between two looks at the clock


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its declared type; `key`: part of the primary key."""

    name: str
    type: str
    key: bool = False

    @property
    def textual(self) -> bool:
        """Whether it holds text by SQLite's rules of affinity (datatype3.html, section 3.1)."""
        upper = self.type.upper()
        return "INT" not in upper and any(sign in upper for sign in ("CHAR", "CLOB", "TEXT"))


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view: the statement that made it, its columns, and (own column, table, column) of its
    foreign keys.
    """

    name: str
    sql: str
    columns: tuple[Column, ...]
    keys: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returned. `truncated` says what was cut, or is empty."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: str = ""


class Database:
    """One SQLite database, a file or the bytes of one; safe in threads, as each query connects anew."""

    def __init__(self, source: Path | bytes, name: str) -> None:
        """Read the schema. Raises Unavailable if it is no readable SQLite database."""
        self.name = name
        self._source = source
        try:
            with self._connected() as connection:
                self.tables = tuple(_schema(connection))
        except sqlite3.Error as error:
            raise Unavailable(f"{name} cannot be read as a SQLite database: {error}") from error

    def table(self, name: str) -> Table | None:
        """The table of that name, in any case."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)

    def query(
        self,
        sql: str,
        values: Sequence[Value] = (),
        *,
        limits: Limits | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Result:
        """The rows of one SELECT over this database's tables, with `values` for its question marks.

        Raises a `guard.Rejected` for what is not allowed, SqlFailed for what SQLite does not run.
        """
        limits = limits or Limits()
        with self._guarded(sql, limits, cancelled) as (connection, _):
            cursor = connection.execute(sql, tuple(values))
            columns = tuple(str(entry[0])[:200] for entry in cursor.description or ())
            return _fetch(cursor, columns, limits)

    def reads(self, sql: str, limits: Limits | None = None) -> tuple[str, ...]:
        """The names of the tables a query reads, in the order of the schema; it is compiled, not run."""
        with self._guarded(sql, limits or Limits(), lambda: False) as (connection, guard):
            connection.execute(f"EXPLAIN {sql}").close()
        return tuple(table.name for table in self.tables if table.name.lower() in guard.read)

    @contextmanager
    def _guarded(
        self, sql: str, limits: Limits, cancelled: Callable[[], bool]
    ) -> Iterator[tuple[sqlite3.Connection, Authorizer]]:
        check_statement(sql)
        guard = Authorizer([table.name for table in self.tables], named_parts(sql))
        end = time.monotonic() + limits.seconds

        def late() -> bool:
            return time.monotonic() >= end

        try:
            with self._connected() as connection:
                limit(connection, limits)
                connection.set_progress_handler(lambda: late() or cancelled(), STEPS)
                connection.set_authorizer(guard)
                yield connection, guard
        except SqlError:
            raise
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise told(error, guard, late, limits) from error

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection that cannot write: to a file opened read-only, or to a copy in memory."""
        if isinstance(self._source, bytes):
            connection = sqlite3.connect(":memory:", isolation_level=None)
        else:
            uri = f"{self._source.resolve().as_uri()}?mode=ro"
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=1.0)
        try:
            if isinstance(self._source, bytes):
                connection.deserialize(self._source)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        finally:
            connection.close()


def _fetch(cursor: sqlite3.Cursor, columns: tuple[str, ...], limits: Limits) -> Result:
    rows: list[tuple[Value, ...]] = []
    size = cut = 0
    said: list[str] = []
    for row in cursor:
        if len(rows) >= limits.rows:
            said.append(f"only the first {limits.rows} rows")
            break
        shown = tuple(_value(value) for value in row)
        cut += sum(isinstance(value, str) and len(value) > limits.value for value in shown)
        kept = tuple(
            f"{value[: limits.value]}…" if isinstance(value, str) and len(value) > limits.value else value
            for value in shown
        )
        size += sum(len(str(value)) for value in kept)
        if size > limits.result:
            said.append(f"only the first {len(rows)} rows, as all have more than {limits.result} characters")
            break
        rows.append(kept)
    if cut:
        said.append(f"{cut} values cut at {limits.value} characters")
    return Result(columns, tuple(rows), "; ".join(said))


def _value(value: Any) -> Value:
    """As JSON can hold it: a BLOB is told by its size, infinity by its name."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float) or value is None else str(value)


def _schema(connection: sqlite3.Connection) -> Iterator[Table]:
    """The ordinary tables and views; a virtual table runs code of its module, so it is left out."""
    found = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND (type = 'view' OR rootpage > 0) ORDER BY rowid"
    ).fetchall()
    virtual = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0")
    shadows = tuple(f"{name}_".lower() for (name,) in virtual)
    for name, kind, sql in found:
        if kind == "table" and shadows and name.lower().startswith(shadows):
            continue
        try:
            columns = connection.execute(
                "SELECT name, type, pk FROM pragma_table_info(?)", (name,)
            ).fetchall()
            keys = connection.execute(
                'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', (name,)
            ).fetchall()
        except sqlite3.OperationalError:
            if kind == "table":
                raise
            continue  # a view of what is not there: no query can read it
        yield Table(
            name,
            sql or "",
            tuple(Column(column, declared or "", bool(key)) for column, declared, key in columns),
            tuple((own, table, other or "") for own, table, other in keys),
        )
