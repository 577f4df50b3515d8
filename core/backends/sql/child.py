"""Runs guarded queries in a process of its own, which can be killed: no function of SQL holds up who asks.

Run by `worker` as `python -m core.backends.sql.child`. Each message is a line of JSON. The first one names
the file, or how many bytes of a database follow; each one after it is a request, and gets one line in answer.
"""

from __future__ import annotations

import json
import math
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.backends.sql import guard
from core.backends.sql.guard import QueryLimits, SqlError
from core.domain.system import end_after, limit_memory

STEPS = 500  # of SQLite's virtual machine between two looks at the clock
MEMORY = 1 << 30  # bytes of address space besides those of a database held in memory
IDLE_S = 300.0  # a process that nobody asks for so long ends
ORPHAN_S = 1.0  # a query runs at most so much longer than its time should nobody be left to kill it
MAX_MESSAGE_CHARS = 2_000  # characters of a message, which may quote what was asked

Source = Path | bytes


@contextmanager
def connected(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a connection that cannot write: to a file opened read-only, or to a copy in memory."""
    if isinstance(source, bytes):
        connection = sqlite3.connect(":memory:", isolation_level=None)
    else:
        uri = f"{source.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=1.0)
    try:
        if isinstance(source, bytes):
            connection.deserialize(source)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA temp_store = MEMORY")  # sorting and recursion must not fill the disk
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
    finally:
        connection.close()


def answer(source: Source, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request with the schema, the rows of a query, the tables it reads, or an error."""
    try:
        if asked["do"] == "schema":
            with connected(source) as connection:
                return {"tables": list(_schema(connection))}
        return _guarded(source, asked)
    except SqlError as error:
        return {"error": [type(error).__name__, str(error)[:MAX_MESSAGE_CHARS]]}
    except sqlite3.Error as error:
        return {"unreadable": str(error)[:MAX_MESSAGE_CHARS]}


def _guarded(source: Source, asked: Mapping[str, Any]) -> dict[str, Any]:
    sql: str = asked["sql"]
    limits = QueryLimits(**asked["limits"])
    guard.check_statement(sql)
    authorizer = guard.Authorizer(asked["tables"], guard.named_parts(sql))
    end = time.monotonic() + limits.seconds

    def late() -> bool:
        return time.monotonic() >= end

    try:
        with connected(source) as connection:
            names = (name.lower() for (name,) in connection.execute("SELECT name FROM sqlite_master"))
            authorizer.hide(names)
            guard.limit(connection, limits)
            connection.set_progress_handler(late, STEPS)
            connection.set_authorizer(authorizer)
            if asked["do"] == "reads":
                connection.execute(f"EXPLAIN {sql}").close()
                return {"read": sorted(authorizer.read)}
            cursor = connection.execute(sql, asked["values"])
            columns = [str(entry[0])[:200] for entry in cursor.description or ()]
            return {"columns": columns, **_fetch(cursor, limits)}
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        raise guard.in_words(error, authorizer, late, limits) from error


def _fetch(cursor: sqlite3.Cursor, limits: QueryLimits) -> dict[str, Any]:
    rows: list[list[Any]] = []
    size = cut = 0
    said: list[str] = []
    for row in cursor:
        if len(rows) >= limits.rows:
            said.append(f"only the first {limits.rows} rows")
            break
        kept = [_value(value) for value in row]
        for at, value in enumerate(kept):
            if isinstance(value, str) and len(value) > limits.value:
                kept[at], cut = f"{value[: limits.value]}…", cut + 1
            size += len(str(kept[at]))
        if size > limits.result:
            said.append(f"only the first {len(rows)} rows, as all have more than {limits.result} characters")
            break
        rows.append(kept)
    if cut:
        said.append(f"{cut} values cut at {limits.value} characters")
    return {"rows": rows, "truncated": "; ".join(said)}


def _value(value: Any) -> Any:
    """Convert a value to JSON: a BLOB becomes its size, infinity its name."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float) or value is None else str(value)


def _schema(connection: sqlite3.Connection) -> Iterator[list[Any]]:
    """Yield name, statement, columns and foreign keys of the ordinary tables and views; virtual tables, which
    run code of their module, are skipped.
    """
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
                "SELECT name, coalesce(type, ''), pk > 0 FROM pragma_table_info(?)", (name,)
            ).fetchall()
            keys = connection.execute(
                """SELECT "from", "table", coalesce("to", '') FROM pragma_foreign_key_list(?)""", (name,)
            ).fetchall()
        except sqlite3.OperationalError:
            if kind == "table":
                raise
            continue  # a view of what is not there: no query can read it
        yield [name, sql or "", columns, keys]


def main() -> int:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides
    asking, telling = sys.stdin.buffer, sys.stdout.buffer
    first = json.loads(asking.readline())
    size: int = first.get("bytes", 0)
    limit_memory(MEMORY + 3 * size)
    source = Path(first["path"]) if "path" in first else asking.read(size)

    def tell(what: Mapping[str, Any]) -> None:
        telling.write(json.dumps(what, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        telling.flush()

    tell({"ready": True})
    end_after(IDLE_S)
    while line := asking.readline():
        asked = json.loads(line)
        end_after(asked["seconds"] + ORPHAN_S)
        said = answer(source, asked)
        end_after(IDLE_S)
        tell(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
