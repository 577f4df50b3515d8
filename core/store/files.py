"""Opens the store's file: to write (made, checked, brought up to date) or to read for a moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from core.domain.errors import BadInput, Unavailable, describe
from core.domain.program import COMMAND
from core.store import migrations, postgres
from core.store.migrations import APPLICATION, SCHEMA, UNRELEASED, migrate
from core.store.postgres import Dsn

DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_NO_PLACE = ("SQLITE_CANTOPEN", "SQLITE_READONLY")  # for WAL's shared memory: then nobody writes there either
LOG_S = 2.0  # how long to wait for those who read, to empty the log
BUSY_S = 30.0  # how long to wait for another process's transaction


Place = Path | Dsn  # where a store is: in a file, or in a database on a server


def place_of(text: str) -> Place:
    """Return a store's place from its path or URL."""
    return Dsn(text) if postgres.is_dsn(text) else Path(text)


def open_to_write(path: Place) -> sqlite3.Connection:
    """Open a connection in autocommit mode to a file at this program's schema, creating it if necessary.

    Raises BadInput if the file is not ours or newer than this program, sqlite3.Error or OSError if it cannot
    be opened or, when that is needed, written.
    """
    if isinstance(path, Dsn):
        return postgres.open_to_write(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder; use the path of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        if version(connection, path) < SCHEMA:
            migrate(connection)
        _use_wal(connection)
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA secure_delete = ON")  # what is deleted or replaced is overwritten
    return connection


@contextmanager
def reading(path: Place) -> Iterator[sqlite3.Connection]:
    """Yield a read-only connection with one snapshot of the file; a missing file reads as empty.

    Raises Unavailable if the file cannot be read.
    """
    if isinstance(path, Dsn):
        with postgres.reading(path) as connection:
            yield connection
        return
    try:
        with closing(open_to_read(path)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise Unavailable(f"the sessions in {path} cannot be read: {in_words(error, path)}") from error


def in_words(error: Exception, path: Place) -> str:
    """Describe an error of the file; if it is damaged, with the remedy."""
    damaged = getattr(error, "sqlite_errorname", "").startswith(DAMAGED)
    return f"{describe(error)}; {rescue(path)}" if damaged and isinstance(path, Path) else describe(error)


def rescue(path: Path) -> str:
    """Return the command that saves the readable part of a damaged file."""
    return f"rescue the readable runs with: {COMMAND} sessions recover '{path}'"


def empty_log(path: Place) -> None:
    """Move all of the write-ahead log into the file, and cut it: it holds what pages were before a deletion.

    Raises sqlite3.Error, also where another connection goes on reading.
    """
    if isinstance(path, Dsn):
        return  # the server's own matter: its rows go at its next vacuum
    with closing(sqlite3.connect(path, timeout=LOG_S)) as connection:
        (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("it is being read")


def free(path: Path) -> int:
    """Bytes of the file that hold nothing and that `vacuum` gives back; 0 of one that cannot be read."""
    try:
        with closing(open_to_read(path)) as connection:
            (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
            (bytes_each,) = connection.execute("PRAGMA page_size").fetchone()
    except sqlite3.Error:
        return 0  # other checks tell that
    return int(pages * bytes_each)


def vacuum(path: Path) -> tuple[int, int]:
    """Rewrite the file without its free pages, blocking others. Return its bytes before and after.

    Raises Unavailable if it cannot be written, or the disk has no room for a second copy.
    """
    try:
        with closing(open_to_write(path)) as connection:
            empty_log(path)
            before = path.stat().st_size
            connection.execute("INSERT INTO search (search) VALUES ('optimize')")
            connection.execute("VACUUM")
        empty_log(path)
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"{path} cannot be compacted now: {in_words(error, path)}") from error
    return before, path.stat().st_size


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a read-only connection, to an empty database in memory if the file does not exist."""
    if not path.exists() or path.stat().st_size == 0:
        empty = sqlite3.connect(":memory:", isolation_level=None)
        migrate(empty)
        return empty
    uri = path.resolve().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=BUSY_S, isolation_level=None)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        if Path(f"{path}-wal").exists() or not error.sqlite_errorname.startswith(_NO_PLACE):
            raise
        connection = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)
    return connection


def version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of a file that is ours or empty. Raises BadInput for any other."""
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname != "SQLITE_NOTADB":
            raise
        raise BadInput(
            f"{path} is not a RouteScope session file, or is damaged: {error}; if it was one, {rescue(path)}"
        ) from None
    if application not in (APPLICATION, UNRELEASED) and (application or tables):
        raise BadInput(f"{path} is another program's database; use a RouteScope session file or a new path")
    return migrations.check(path, version, unreleased=application == UNRELEASED)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Change to WAL, once for the life of the file; SQLite does not wait for others here, so this does."""
    deadline = time.monotonic() + BUSY_S
    while True:
        with suppress(sqlite3.OperationalError):  # locked, or a file that cannot be written: told below
            connection.execute("PRAGMA journal_mode = WAL")
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal":
            return
        if time.monotonic() > deadline:
            raise sqlite3.OperationalError("it cannot be changed to write-ahead logging")
        time.sleep(0.02)
