"""Deletes runs for good: their rows, what the search index holds of them, and what no other run holds."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass

from core.store.postgres import PostgresConnection as Served
from core.store.process_liveness import status_now
from core.store.rows import bind

KEPT_S = 30 * 86400.0  # how long is known which runs are gone: no process has one in memory for longer
_STATE = "number, status, host, pid, born, saved, boot"
_PASSAGES = "SELECT CAST(p.value AS BIGINT) FROM runs r, json_each(r.passages) p"
_TEXTS = """SELECT r.question FROM {runs} r UNION ALL
    SELECT hash_of(t.value) FROM {runs} r, json_each(CAST(r.history AS TEXT)) t"""
_GONE = {  # what goes, in the order in which it is made
    "gone": "(number INTEGER PRIMARY KEY)",
    "gone_passages": f"AS {_PASSAGES} WHERE r.number IN (SELECT * FROM gone)",
    "gone_texts": f"AS {_TEXTS.format(runs='(SELECT * FROM runs WHERE number IN (SELECT * FROM gone))')} "
    "UNION ALL SELECT text FROM passages WHERE number IN (SELECT * FROM gone_passages)",
}


@dataclass(frozen=True, slots=True)
class Purged:
    """The number of deleted rows."""

    runs: int = 0
    passages: int = 0
    texts: int = 0


def due(connection: sqlite3.Connection, until: float) -> list[int]:
    """Return the rows of runs that were deleted at `until` (seconds since 1970) or before, and are not
    running.
    """
    return _ended(connection, "deleted <> 0 AND deleted <= ?", until)


def asked_before(connection: sqlite3.Connection, moment: str) -> list[int]:
    """Return the rows of runs asked before `moment` (ISO 8601, UTC), deleted ones included, that are not
    running.
    """
    return _ended(connection, "created < ?", moment)


def runs(connection: sqlite3.Connection, numbers: Iterable[int]) -> Purged:
    """Delete these runs with all that they alone hold; inside a transaction of a connection that overwrites
    what it deletes (secure_delete).
    """
    served = isinstance(connection, Served)
    if not served:
        connection.create_function("hash_of", 1, lambda turn: bytes.fromhex(json.loads(turn)[1]))
    for table, content in _GONE.items():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TEMP TABLE {table} {content}")
        if table == "gone":
            connection.executemany("INSERT INTO gone VALUES (?)", [(number,) for number in numbers])
    now = time.time()
    connection.execute("DELETE FROM purged WHERE at < ?", (now - KEPT_S,))
    ids = "FROM runs WHERE number IN (SELECT * FROM gone)"
    connection.execute(f"DELETE FROM purged WHERE id IN (SELECT id {ids})")
    connection.execute(f"INSERT INTO purged (id, at) SELECT id, ? {ids}", (now,))
    for table, column in {"results": "run", "rankings": "run", "search": "rowid"}.items():
        connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT * FROM gone)")
    count = connection.execute("DELETE FROM runs WHERE number IN (SELECT * FROM gone)").rowcount
    passages = connection.execute(
        f"DELETE FROM passages WHERE number IN (SELECT * FROM gone_passages) AND number NOT IN ({_PASSAGES})"
    ).rowcount
    texts = connection.execute(
        f"DELETE FROM texts WHERE hash IN (SELECT * FROM gone_texts) AND "
        f"hash NOT IN ({_TEXTS.format(runs='runs')} "
        "UNION ALL SELECT text FROM passages UNION ALL SELECT text FROM label_pool)"
    ).rowcount
    if count and not served:  # a full-text index only notes what was deleted, until its parts are merged
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    return Purged(count, passages, texts)


def newest(connection: sqlite3.Connection) -> int:
    """Return a counter that grows with each run deleted for good in any process; 0 before the first."""
    counter = "seq FROM sqlite_sequence WHERE name = 'purged'"
    if isinstance(connection, Served):
        counter = "CASE WHEN is_called THEN last_value ELSE 0 END FROM purged_number_seq"
    row = connection.execute(f"SELECT {counter}").fetchone()
    return int(row[0]) if row is not None else 0


def is_purged(connection: sqlite3.Connection, run_id: str) -> bool:
    """Return True if a run is known to have been deleted for good."""
    found = connection.execute("SELECT 1 FROM purged WHERE id = ?", (bind(run_id),)).fetchone()
    return found is not None


def welcome(connection: sqlite3.Connection, run_id: str) -> None:
    """Let a run that was deleted for good be written again: somebody brings it back from a file."""
    connection.execute("DELETE FROM purged WHERE id = ?", (bind(run_id),))


def _ended(connection: sqlite3.Connection, where: str, value: object) -> list[int]:
    rows = connection.execute(f"SELECT {_STATE} FROM runs WHERE {where}", (value,)).fetchall()
    return [row["number"] for row in rows if status_now(row) != "running"]
