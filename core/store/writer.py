"""One thread writes: from a queue, in batches of one transaction. What fails is kept and tried again."""

from __future__ import annotations

import atexit
import logging
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

from core.domain.errors import Unavailable, describe
from core.domain.types import Run
from core.store.files import Place, in_words
from core.store.postgres import LostConnection
from core.store.postgres import PostgresConnection as Served
from core.store.runs import RunWriter

T = TypeVar("T")
Connection = sqlite3.Connection
log = logging.getLogger("routescope.store")

MAX_WAITING_RUNS = 50  # runs kept in memory while the file cannot be written
RETRY_S = (1.0, 30.0)  # first and longest wait between tries
EXIT_S = 10.0  # how long the end of the process waits for the last batch


@dataclass(slots=True)
class _Order:
    """Work somebody waits for."""

    work: Callable[[Connection], Any]
    durable: bool
    future: Future[Any] = field(default_factory=Future)


class StoreWriter:
    """The queue and its thread, which is started by the first write. Safe to call from any thread."""

    def __init__(self, path: Place, connect: Callable[[Any], Connection], rows: RunWriter) -> None:
        self._path, self._connect, self._rows = path, connect, rows
        self._changed = threading.Condition()
        self._runs: dict[str, Run] = {}  # the newest state of each run that is not in the file
        self._orders: list[_Order] = []
        self._asked = 0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._file: tuple[int, int] | None = None
        self._refused: dict[str, str] = {}
        self._dropped = 0
        self._trouble: str | None = None  # why the file cannot be written now

    def put(self, run: Run) -> None:
        """Queue a run; an older state of it that still waits is not written at all."""
        with self._changed:
            self._runs[run.id] = run
            self._wake()

    def do(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Run `work` in the next transaction, after all that was queued, and give its result.

        Whatever `work` raises is raised here and only its own changes are undone. Raises Unavailable if the
        file cannot be written. If `durable`, all that was queued is on the disk itself on return.
        """
        order = _Order(work, durable)
        with self._changed:
            self._orders.append(order)
            self._wake()
        found: T = order.future.result()
        return found

    def waiting(self, run_id: str) -> Run | None:
        """Return the queued run, or None."""
        with self._changed:
            return self._runs.get(run_id)

    def settle(self, timeout: float) -> None:
        """Wait until nothing is queued, but no longer than `timeout` seconds or for a file in trouble."""
        with self._changed:
            self._changed.wait_for(lambda: not self._runs or self._trouble is not None, timeout)

    def warnings(self) -> list[str]:
        """Describe what is not stored and why, one line each."""
        with self._changed:
            lines = [self._trouble] if self._trouble else []
            if self._dropped:
                lines.append(f"{self._dropped} runs could not be stored and are lost")
            return lines + list(self._refused.values())

    def warn(self, error: Exception) -> str:
        """Note, until the next write that goes well, that the file cannot be written; gives the line."""
        trouble = f"sessions cannot be stored in {self._path}: {in_words(error, self._path)}"
        with self._changed:
            if trouble != self._trouble:
                log.warning("%s", trouble)
            self._trouble = trouble
            self._changed.notify_all()
        return trouble

    def close(self) -> None:
        """Write what is queued and end the thread; a later write starts it again."""
        with self._changed:
            thread = self._thread
            self._closing = True
            self._changed.notify_all()
        if thread is not None:
            thread.join(EXIT_S)
        with self._changed:
            self._closing = False
        if self._runs:
            log.warning("runs that are not stored: %s; %s", ", ".join(self._runs), self._trouble)

    def _wake(self) -> None:
        """Notify the thread, holding the lock; start it if it is not running, also after a fork."""
        self._asked += 1
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        self._changed.notify_all()

    def _work(self) -> None:
        connection: Connection | None = None
        tried, pause = 0, RETRY_S[0]
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._asked != tried,  # noqa: B023 - called before `tried` changes
                    pause if self._runs else None,
                )
                if self._asked == tried and self._closing and (not self._runs or self._trouble):
                    self._thread = None
                    break
                tried = self._asked
                runs, orders = list(self._runs.values()), self._orders
                self._orders = []
            connection = self._batch(connection, runs, orders)
            pause = min(pause * 2, RETRY_S[1]) if connection is None else RETRY_S[0]
        atexit.unregister(self.close)
        if connection is not None:
            connection.close()

    def _batch(
        self, connection: Connection | None, runs: list[Run], orders: list[_Order]
    ) -> Connection | None:
        """Write all in one transaction; the connection, or None if that failed."""
        for again in (True, False):
            try:
                return self._transaction(connection, runs, orders)
            except Exception as error:  # noqa: BLE001 - shown in `warnings` and logged; the thread must go on
                if again and isinstance(
                    error, LostConnection
                ):  # nothing of it happened: the server restarted
                    log.warning("%s; trying once more", error)
                    self._rows.forget()
                    connection = None
                    continue
                self._failed(error, orders)
                return None
        return None

    def _transaction(
        self, connection: Connection | None, runs: list[Run], orders: list[_Order]
    ) -> Connection:
        refused: dict[str, str] = {}
        answers: list[Callable[[], None]] = []
        try:
            if connection is not None and self._file != _identity(self._path):
                connection.close()  # the file was taken away: what is written there is lost
                self._rows.forget()
                connection = None
            if connection is None:
                connection = self._connect(self._path)
                self._file = _identity(self._path)
            durable = any(order.durable for order in orders)
            if isinstance(connection, Served):
                connection.begin()
            else:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
            for run in runs:
                try:
                    _apart(connection, partial(self._rows.write, run=run))
                except Exception as error:  # noqa: BLE001 - shown in `warnings`; the other runs are stored
                    _unless_the_file(error)
                    self._rows.forget()
                    refused[run.id] = f"run {short(run.id)} is not stored: {describe(error)}"
            for order in orders:
                try:
                    answers.append(partial(order.future.set_result, _apart(connection, order.work)))
                except Exception as error:  # noqa: BLE001 - raised again where the order was given
                    _unless_the_file(error)
                    answers.append(partial(order.future.set_exception, error))
            connection = _committed(connection, self._connect, self._path)
        except Exception:
            if connection is not None:
                connection.close()  # also undoes the transaction
            raise
        with self._changed:
            self._trouble = None
            for run in runs:
                if self._runs.get(run.id) is run:
                    del self._runs[run.id]
                self._refused.pop(run.id, None)
            self._refused |= refused
            self._changed.notify_all()
        for answer in answers:
            answer()
        return connection

    def _failed(self, error: Exception, orders: list[_Order]) -> None:
        self._rows.forget()
        with self._changed:
            while len(self._runs) > MAX_WAITING_RUNS:
                self._runs.pop(next(iter(self._runs)))
                self._dropped += 1
            told = self.warn(error)
        for order in orders:
            order.future.set_exception(Unavailable(told))


def _committed(connection: Connection, connect: Callable[[Any], Connection], path: Place) -> Connection:
    """Commit; the connection to go on with. Raises Lost if it did not happen, and what else goes wrong."""
    if not isinstance(connection, Served):
        connection.execute("COMMIT")
        return connection
    done = connection.commit()
    if done is None:
        raise sqlite3.OperationalError(
            "the connection was lost while it was being stored, and the server does not say whether it was; "
            "look before you do it again"
        )
    if not done:
        raise LostConnection("the connection was lost before anything was stored")
    return connect(path) if connection.closed else connection


def _identity(path: Place) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one at the same path, or None if there is none."""
    if not isinstance(path, Path):
        return None
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _apart(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Run `work` so that, if it raises, its own changes are undone and no others."""
    connection.execute("SAVEPOINT part")
    try:
        result = work(connection)
    except BaseException:
        if connection.in_transaction:  # SQLite has ended it by itself when the disk is full
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")
    return result


def _unless_the_file(error: Exception) -> None:
    """Raise the error again if it is about the file and not about what was to be written."""
    of_the_content = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError)
    if isinstance(error, sqlite3.DatabaseError | OSError) and not isinstance(error, of_the_content):
        raise error
