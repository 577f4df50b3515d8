"""The store on PostgreSQL: a connection that takes the store's SQL, and the place it leads to.

Every statement of the store is written once, in SQL that SQLite and PostgreSQL share; where they differ, the
calling module has one for each. psycopg is imported by the first connection: a store in a file
needs none of it.

One transaction writes at a time, as in a file: each takes an advisory lock first. What the store reads before
it writes (the next number, how many there are) is then true, and two writers cannot wait for each other.
"""

from __future__ import annotations

import sqlite3
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from core.domain.errors import BadInput, Unavailable
from core.domain.postgres import INSTALL, escaped, unescaped
from core.domain.postgres import Dsn as Dsn
from core.domain.postgres import is_dsn as is_dsn
from core.store import codec, migrations
from core.store.migrations import SCHEMA, steps
from core.store.rows import Encoded

CONNECT_S = 10
AWAY_S = 20.0  # how long a server that was there before is waited for
IDLE = 4  # connections kept open to read
WORDS_BYTES = 900_000  # of one text's words in the index; PostgreSQL holds 1 MiB
POSITION = 16_383  # the last one a tsvector knows

NAMESPACE = "routescope"  # the PostgreSQL schema that holds the tables
WRITING, MIGRATING = 0x52745377, 0x52745363  # keys of PostgreSQL's advisory locks
STEPS = steps(".postgres.sql")  # of schema/v1.postgres.sql, v2.postgres.sql, ...

_known: set[Dsn] = set()  # those that this process has been connected to
_idle: dict[Dsn, list[PostgresConnection]] = {}


class LostConnection(sqlite3.OperationalError):
    """The connection is gone; what was not committed did not happen."""


class PostgresRow:
    """A row by name and by number, as `sqlite3.Row`."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: dict[str, int], values: Sequence[Any]) -> None:
        self._names = names
        self._values = tuple(unescaped(value) if isinstance(value, str) else value for value in values)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise IndexError(f"No item with that key: {key}")
            return self._values[self._names[key]]
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._names)


class PostgresConnection:
    """The part of `sqlite3.Connection` that the store uses, over psycopg. Errors are sqlite3's."""

    def __init__(self, dsn: Dsn) -> None:
        """Connect; a server that was there before is waited for while it starts again."""
        psycopg = _psycopg()
        self.dsn = dsn
        deadline = time.monotonic() + (AWAY_S if dsn in _known else 0)
        while True:
            try:
                self._raw = psycopg.connect(
                    dsn.conninfo(),
                    autocommit=True,
                    connect_timeout=CONNECT_S,
                    row_factory=_rows,
                    application_name="routescope",
                    options=f"-c search_path={NAMESPACE}",
                )
                break
            except psycopg.ProgrammingError:  # it quotes what it could not read, password and all
                raise BadInput(f"the address {dsn} is not one that PostgreSQL's client can read") from None
            except psycopg.Error as error:
                if time.monotonic() > deadline:
                    raise sqlite3.OperationalError(dsn.clean(str(error))) from None
                time.sleep(0.2)
        _known.add(dsn)
        if self._raw.info.parameter_status("server_encoding") != "UTF8":
            encoding = self._raw.info.parameter_status("server_encoding")
            self._raw.close()
            raise BadInput(f"{dsn} holds texts as {encoding}; make the database with ENCODING 'UTF8'")

    @property
    def in_transaction(self) -> bool:
        """Return True if a transaction is open, including a failed one."""
        return not self._raw.closed and bool(self._raw.info.transaction_status.value)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Do one statement; its cursor. None for one that concerns only files."""
        if sql.startswith("PRAGMA"):
            return None
        given = [_encoded(value) for value in values]
        return self._do(lambda: self._raw.execute(_marked(sql) if given else sql, given or None))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Do one statement for each row, sent together."""
        given = [[_encoded(value) for value in row] for row in rows]
        if given:
            self._do(lambda: self._raw.cursor().executemany(_marked(sql), given))

    def begin(self) -> None:
        """Begin a transaction that writes: the only one at a time."""
        self.execute("BEGIN")
        self.execute(f"SELECT pg_advisory_xact_lock({WRITING})")

    def commit(self) -> bool | None:
        """Commit. If the connection is lost meanwhile, ask the server for the outcome: False if the commit
        did not happen, None if that is unknown.
        """
        number = self.execute("SELECT pg_current_xact_id()::text").fetchone()[0]
        try:
            self.execute("COMMIT")
        except LostConnection:
            try:
                again = PostgresConnection(self.dsn)
                status = again.execute("SELECT pg_xact_status(?::xid8)", (number,)).fetchone()[0]
                again.close()
            except sqlite3.Error:
                return None
            return {"committed": True, "aborted": False}.get(status)
        return True

    @property
    def closed(self) -> bool:
        """Return True if the connection was lost or closed."""
        return bool(self._raw.closed)

    def close(self) -> None:
        """Let go of it; what is not committed is undone."""
        self._raw.close()

    def _do(self, work: Callable[[], Any]) -> Any:
        psycopg = _psycopg()
        try:
            return work()
        except psycopg.IntegrityError as error:
            raise sqlite3.IntegrityError(self.dsn.clean(str(error))) from None
        except psycopg.DataError as error:
            raise sqlite3.DataError(self.dsn.clean(str(error))) from None
        except psycopg.Error as error:
            told = self.dsn.clean(str(error))
            # Killed amid `executemany` it may stay in pipeline mode, in which nothing can be done with it.
            if self._raw.closed or self._raw.broken or self._raw.pgconn.pipeline_status:
                self._raw.close()
                raise LostConnection(f"the connection to {self.dsn} was lost: {told}") from None
            raise sqlite3.OperationalError(told) from None


def migrate(connection: PostgresConnection) -> None:
    """Bring the tables to this program's schema, all or nothing; processes that start at once wait.

    Raises BadInput if this program cannot read the tables.
    """
    if version(connection) == SCHEMA:
        return
    # before the transaction begins: one that waits inside may go on seeing that the tables are not there
    connection.execute(f"SELECT pg_advisory_lock({MIGRATING})")
    connection.execute("BEGIN")
    try:
        before = version(connection)
        if before == 0:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {NAMESPACE}")
            connection.execute("CREATE TABLE store_version (version bigint NOT NULL)")
            connection.execute("INSERT INTO store_version VALUES (0)")
        for statements in STEPS[before:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute("UPDATE store_version SET version = ?", (SCHEMA,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        if not connection.closed:
            connection.execute(f"SELECT pg_advisory_unlock({MIGRATING})")


def version(connection: PostgresConnection) -> int:
    """Return the schema version of the tables, 0 if there are none. Raises BadInput for newer ones."""
    (unreleased,), (current,) = (
        connection.execute(f"SELECT to_regclass('{NAMESPACE}.{table}')").fetchone()
        for table in ("schema_version", "store_version")
    )
    found = int(connection.execute("SELECT version FROM store_version").fetchone()[0]) if current else 0
    return migrations.check(connection.dsn, found, unreleased=bool(unreleased))


def open_to_write(dsn: Dsn) -> sqlite3.Connection:
    """Open a connection in autocommit mode to tables at this program's schema, creating them if necessary."""
    connection = PostgresConnection(dsn)
    try:
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return cast("sqlite3.Connection", connection)


@contextmanager
def reading(dsn: Dsn) -> Iterator[sqlite3.Connection]:
    """Yield a read-only connection with one snapshot. Raises Unavailable."""
    try:
        connection = _taken(dsn)
        try:
            yield cast("sqlite3.Connection", connection)
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        kept = _idle.setdefault(dsn, [])
        if len(kept) < IDLE:
            kept.append(connection)
        else:
            connection.close()
    except sqlite3.Error as error:
        raise Unavailable(f"the sessions in {dsn} cannot be read: {error}") from error


def _taken(dsn: Dsn) -> PostgresConnection:
    """One kept open that still answers, or a new one; in a transaction."""
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    while kept := _idle.get(dsn):
        try:
            connection = kept.pop()
            connection.execute(begin)
        except IndexError:  # another thread was quicker
            continue
        except sqlite3.Error:
            connection.close()
        else:
            return connection
    connection = PostgresConnection(dsn)
    try:
        migrate(connection)
        connection.execute(begin)
    except BaseException:
        connection.close()
        raise
    return connection


def words(text: str) -> str:
    """Convert a text to a tsvector: lower case, without diacritics, split at every character that is neither
    letter nor digit, like the index of a file. Words after the first 900 KB cannot be found.
    """
    places: dict[str, list[int]] = {}
    size = 0
    for place, word in enumerate(split(text), 1):
        if word not in places:
            size += len(word.encode()) + 8
            if size > WORDS_BYTES:
                break
        if len(found := places.setdefault(word, [])) < 64:
            found.append(min(place, POSITION))
    return " ".join(f"'{word}':{','.join(map(str, at))}" for word, at in places.items())


def split(text: str) -> list[str]:
    """Split a text into its searchable words."""
    plain = unicodedata.normalize("NFKD", text.replace("\0", " ")).casefold()
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    cut = "".join(c if c.isalnum() or unicodedata.category(c) == "Co" else " " for c in kept)
    return [word[:500] for word in cut.encode("utf-8", "replace").decode().split()]


def query(search: Sequence[str]) -> str:
    """Return a tsquery that matches every word as a prefix; the parts of a word must be adjacent."""
    found = filter(None, map(split, search))
    every = [" <-> ".join([*(f"'{p}'" for p in parts[:-1]), f"'{parts[-1]}':*"]) for parts in found]
    return " & ".join(f"({one})" for one in every)


def _encoded(value: Any) -> Any:
    if isinstance(value, Encoded):
        value = codec.to_text(value)
    if isinstance(value, bool):
        return int(value)
    return escaped(value) if isinstance(value, str) else value


def _marked(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _rows(cursor: Any) -> Callable[[Sequence[Any]], PostgresRow]:
    names = {column.name: at for at, column in enumerate(cursor.description or ())}
    return lambda values: PostgresRow(names, values)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise Unavailable(f"a store in PostgreSQL needs psycopg; install it: {INSTALL}") from None
    return psycopg
