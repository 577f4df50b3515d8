"""One store copied into another, a file or a database each: all rows, then counts and checksums compared."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from core.domain.errors import BadInput, Unavailable
from core.store import codec, runs
from core.store.files import Place, in_words, open_to_write, reading
from core.store.postgres import Dsn
from core.store.postgres import PostgresConnection as Served
from core.store.rescue import TABLES
from core.store.rows import bind, parsed, text
from core.store.search import index

T = TypeVar("T")
BATCH = 500  # rows of one transaction
HASHES = {"texts": ("hash",), "passages": ("hash", "text"), "runs": ("question",), "label_pool": ("text",)}
NUMBERED = ("passages", "runs", "judgements", "deeds", "purged", "trash")  # whose rows get the next number


@dataclass(frozen=True, slots=True)
class Copied:
    """Rows of one table: how many there are, how many of them were new, and the sha256 of all of them, equal
    in both stores.
    """

    table: str
    rows: int
    new: int
    sha256: str


def copy(
    source: Place, target: Place, *, replace: bool = False, progress: Callable[[str, int, int], None]
) -> tuple[Copied, ...]:
    """Copy all that people made and ran. What a copy that was ended before has written is not written again.

    BadInput if the target has rows that the source does not have, unless `replace`, which deletes all of
    the target first; Unavailable if one of them cannot be read or written, or they differ afterwards.
    `progress` is given a table, rows done and rows in all.
    """
    if source == target:
        raise BadInput(f"{source} cannot be copied onto itself")
    if not isinstance(source, Dsn) and not source.is_file():
        raise BadInput(f"{source} does not exist")
    try:
        with closing(open_to_write(target)) as new, reading(source) as old:
            if replace:
                with _transaction(new):
                    for table in ("search", *reversed(TABLES)):
                        new.execute(f"DELETE FROM {table}")
            here = {table: _digests(old, table) for table in TABLES}
            there = {table: _digests(new, table) for table in TABLES}
            for table in TABLES:
                if other := len(there[table] - here[table]):
                    raise BadInput(
                        f"{target} has {other} rows in {table} that {source} does not have; copy into an "
                        "empty store, or add --replace to delete what is there"
                    )
                one, two = ({column[0] for column in _columns(c, table)} for c in (old, new))
                if one != two:
                    raise BadInput(
                        f"{table} has other columns in the two stores; open both with this RouteScope"
                    )
            for table in TABLES:
                _fill(old, new, table, there[table], partial(progress, table), len(here[table]))
            if isinstance(new, Served):  # a file goes on with the next number by itself
                for table in NUMBERED:
                    new.execute(
                        f"SELECT setval('{table}_number_seq', max(number)) FROM {table} HAVING count(*) > 0"
                    )
            _index(new)
            return tuple(_compared(new, table, here[table], there[table], target) for table in TABLES)
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(
            f"{source} could not be copied whole to {target}: {in_words(error, target)}; what was copied is "
            "kept, and the same command goes on from there"
        ) from error


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    every = iter(rows)
    while some := list(islice(every, BATCH)):
        yield some


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Names and values of each row; texts as they are, NaN as such."""
    hashes = HASHES.get(table, ())
    for row in connection.execute(f"SELECT * FROM {table}"):
        names = tuple(row.keys())
        yield names, tuple(v if name in hashes else text(v) for name, v in zip(names, row, strict=True))


def _digest(names: tuple[str, ...], values: tuple[Any, ...]) -> bytes:
    """Of a row, the same for a file and a server, whatever the order of their columns."""

    def canonical(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, float):
            return int(value) if value.is_integer() else repr(value)
        return value

    said = sorted(zip(names, map(canonical, values), strict=True))
    return hashlib.sha256(codec.to_bytes(codec.dumps(said))).digest()


def _digests(connection: sqlite3.Connection, table: str) -> set[bytes]:
    return {_digest(*row) for row in _rows(connection, table)}


def _columns(connection: sqlite3.Connection, table: str) -> Any:
    return connection.execute(f"SELECT * FROM {table} LIMIT 0").description


def _fill(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    table: str,
    held: set[bytes],
    progress: Callable[[int, int], None],
    total: int,
) -> None:
    done, hashes = len(held), HASHES.get(table, ())
    for some in _batches(row for row in _rows(old, table) if _digest(*row) not in held):
        names = some[0][0]
        rows = [
            [
                v if name in hashes else "nan" if v != v else bind(v)
                for name, v in zip(names, row, strict=True)
            ]
            for _, row in some
        ]
        columns = ", ".join(f'"{name}"' for name in names)
        with _transaction(new):
            new.executemany(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})", rows)
        done += len(some)
        progress(done, total)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    if isinstance(connection, Served):
        connection.begin()
    else:
        connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _index(connection: sqlite3.Connection) -> None:
    """Make the runs that cannot be found yet findable."""
    missing = connection.execute(
        "SELECT number, tags, note FROM runs WHERE number NOT IN (SELECT rowid FROM search)"
    ).fetchall()
    for some in _batches(missing):
        with _transaction(connection):
            for row in some:
                words = runs.searched(runs.read(connection, row["number"]))
                index(connection, row["number"], *words, " ".join(parsed(row["tags"])), text(row["note"]))


def _compared(
    new: sqlite3.Connection, table: str, wanted: set[bytes], before: set[bytes], target: Place
) -> Copied:
    found = _digests(new, table)
    if found != wanted:
        raise Unavailable(
            f"{table} differs after the copy: {len(wanted)} rows were to be copied, {len(found & wanted)} of "
            f"them are in {target}, and {len(found - wanted)} others; was it written meanwhile?"
        )
    return Copied(table, len(found), len(found - before), hashlib.sha256(b"".join(sorted(found))).hexdigest())
