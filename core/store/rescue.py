"""The way out of a damaged file: a copy made in time, or what can still be read of it in a new one."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.domain import system
from core.domain.errors import BadInput, Unavailable
from core.store import codec, migrations, runs
from core.store.files import in_words, open_to_read, open_to_write, rescue, version
from core.store.rows import parsed, text
from core.store.search import index

TRIED = 20_000  # row numbers that are tried one after the other where nothing can be read
_HEADER = 100  # bytes
_ALL = (  # each after those it names rows of
    "texts passages runs results rankings purged memories memory playlists label_sets label_questions "
    "label_pool judgements presets deeds spent trash"
)
TABLES = tuple(_ALL.split())
_JSON = {
    "label_questions": "question",
    "label_pool": "found",
    "playlists": "entries",
    "presets": "parameters",
}
_UNTIED = migrations.statements("untied.sql")  # delete rows whose other half is lost


@dataclass(frozen=True, slots=True)
class Rescued:
    """The result of a rescue."""

    runs: int  # number of whole runs
    lost: int  # number of runs with missing parts
    judgements: int
    playlists: int
    turns: int
    aside: Path | None  # the damaged file's new path; None if it was intact and not moved


def backup(path: Path, target: Path) -> int:
    """Write a copy of the file as it is at one moment, also while it is written; its bytes.

    BadInput if there is nothing to copy or `target` is there already, Unavailable if one of them cannot be
    read or written.
    """
    _there(path)
    if target.exists():
        raise BadInput(f"{target} already exists; use another file")
    try:
        with closing(open_to_read(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            wrong = _check(copy)
    except (sqlite3.Error, OSError) as error:
        target.unlink(missing_ok=True)
        raise Unavailable(f"{path} cannot be copied to {target}: {in_words(error, path)}") from error
    if wrong is not None:
        target.unlink()
        raise Unavailable(f"{path} is damaged: {wrong}; {rescue(path)}")
    return target.stat().st_size


def damage(path: Path) -> str | None:
    """Describe the damage of a file, or return None; reads all of it."""
    try:
        with closing(open_to_read(path)) as connection:
            return _check(connection)
    except sqlite3.Error as error:
        return str(error)


def recover(path: Path) -> Rescued:
    """Copy the readable part of a damaged file into a new one, which replaces it; the damaged one is renamed.

    Every run in the new one is whole: its texts match the stored hashes. Raises BadInput if there is no such
    file, nothing in it can be read, or it is in use; Unavailable if the new one cannot be written.
    """
    _there(path)
    with closing(_alone(path)) as found:
        if _readable(found, path) and _check(found) is None:
            return _counted(found, 0, None)
        try:
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.") as folder:
                return _recover(path, found, Path(folder))
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(f"{path} cannot be recovered: {error}; it is unchanged") from error


def _recover(path: Path, found: sqlite3.Connection, folder: Path) -> Rescued:
    fresh = folder / path.name
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
    with closing(open_to_write(fresh)) as new:
        with ExitStack() as opened:
            old = found
            if not _readable(found, path):
                old = opened.enter_context(closing(_mended(path, folder / "mended", fresh)))
            if not _readable(old, path):
                raise BadInput(f"{path} has no readable session data; replace it with a backup")
            new.execute("BEGIN")
            for table in TABLES:
                columns = [row["name"] for row in new.execute(f"PRAGMA table_info({table})")]
                marks = ", ".join("?" * len(columns))
                insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
                (made,) = new.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
                read = _both_ways if "WITHOUT ROWID" in made else _by_number
                for row in read(old, table, columns):
                    if table not in _JSON or _is_json(row[columns.index(_JSON[table])]):
                        new.execute(insert, row)
        told = _counted(new, _tie(new), aside)
        new.execute("COMMIT")
    if system.WINDOWS:
        found.close()  # an open file cannot be renamed there
    for part in ("-wal", "-shm", ""):  # a log must not be taken for that of the new file
        if Path(f"{path}{part}").exists():
            system.replace(f"{path}{part}", f"{aside}{part}")
    system.replace(fresh, path)
    return told


def _there(path: Path) -> None:
    if not path.is_file():
        raise BadInput(f"{path} does not exist: no run is stored yet, or the home folder is a different one")


def _alone(path: Path) -> sqlite3.Connection:
    """Open a connection with an exclusive lock, if the file can be locked at all."""
    connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    try:
        connection.execute("PRAGMA writable_schema = ON")  # also reads a file that is shorter than it says
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname.startswith("SQLITE_BUSY"):
            connection.close()
            raise BadInput(
                f"{path} is in use; stop the dashboard and other commands, then try again"
            ) from None
    return connection


def _readable(connection: sqlite3.Connection, path: Path) -> bool:
    """Return True if the tables can be queried. Raises BadInput for another program's file or one of a newer
    version.
    """
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return version(connection, path) > 0 and "runs" in names
    except sqlite3.DatabaseError:
        return False


def _mended(path: Path, copy: Path, sound: Path) -> sqlite3.Connection:
    """Open a copy with the header of a `sound` file, for a file whose own header is damaged. Reading the file
    drops this process's lock, but a file that SQLite cannot read has no lock.
    """
    shutil.copyfile(path, copy)
    header = sound.read_bytes()[:_HEADER]
    with copy.open("r+b") as file:  # without change counter and list of free pages: then its size counts
        file.write(header[:24] + bytes(4) + header[28:32] + bytes(8) + header[40:])
    return sqlite3.connect(copy, isolation_level=None)


def _by_number(old: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    """Rows in the order of their numbers, without those that cannot be read."""
    query = f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    last = tried = 0
    while tried < TRIED:
        try:
            for number, *row in old.execute(query, (last,)):
                if number <= last:
                    raise sqlite3.DatabaseError("the rows are not in their order")
                last, tried = number, 0
                yield row
            return
        except sqlite3.DatabaseError:  # there may be more behind one of the next numbers
            last, tried = last + 1, tried + 1


def _both_ways(old: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    """Rows of a table without numbers: from its beginning, and where they end too early from its end."""
    keys = [row[1] for row in old.execute(f"PRAGMA table_info({table})") if row[5]]
    for way in ("ASC", "DESC"):
        order = ", ".join(f"{key} {way}" for key in keys)
        try:
            yield from old.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
            return
        except sqlite3.DatabaseError:
            continue


def _is_json(value: object) -> bool:
    try:
        return isinstance(value, str | bytes) and parsed(value) is not None
    except ValueError:
        return False


def _tie(new: sqlite3.Connection) -> int:
    """Delete what is not as it was written and what refers to it, index the rest; how many runs were lost."""
    for hash, words in new.execute("SELECT hash, text FROM texts").fetchall():
        if not isinstance(words, str | bytes) or hashlib.sha256(codec.to_bytes(text(words))).digest() != hash:
            new.execute("DELETE FROM texts WHERE hash = ?", (hash,))
    for statement in _UNTIED:
        new.execute(statement)
    lost = 0
    for (number,) in new.execute("SELECT number FROM runs").fetchall():
        try:
            _index(new, number)
        except (BadInput, LookupError, TypeError, ValueError, AttributeError):
            lost += 1
            for table, column in {"results": "run", "rankings": "run", "runs": "number"}.items():
                new.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
    return lost


def _index(new: sqlite3.Connection, number: int) -> None:
    """Make a run findable; raises whatever shows that it is not whole."""
    row = new.execute("SELECT passages, tags, note FROM runs WHERE number = ?", (number,)).fetchone()
    run = runs.read(new, number)
    rankings = new.execute("SELECT count(*), max(n) FROM rankings WHERE run = ?", (number,)).fetchone()
    if len(run.passages) != len(parsed(row["passages"])) or rankings[0] not in (0, (rankings[1] or 0) + 1):
        raise LookupError(f"run {run.id} lacks passages or rankings")
    index(new, number, *runs.searched(run), " ".join(parsed(row["tags"])), text(row["note"]))


def _counted(connection: sqlite3.Connection, lost: int, aside: Path | None) -> Rescued:
    kept, judgements, playlists, turns = (
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("runs", "judgements", "playlists", "memory")
    )
    return Rescued(kept, lost, judgements, playlists, turns, aside)


def _check(connection: sqlite3.Connection) -> str | None:
    """Describe the damage of a file, or return None; reads all of it."""
    try:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if found == "ok" else str(found)
