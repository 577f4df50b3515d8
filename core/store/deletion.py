"""Deletes runs, playlists and presets for good: after the undo time, at the next opening, or by command."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from core.domain import people
from core.domain.errors import Unavailable
from core.store import named_rows, purge, steady_clock
from core.store.files import Place, empty_log, reading
from core.store.purge import Purged
from core.store.writer import StoreWriter

AGAIN_S = 30.0  # how long to wait before a deletion that could not be done is tried again
log = logging.getLogger("routescope.store")


class Deletion:
    """Deletes runs of one file for good, in a thread of its own when their undo time has passed."""

    def __init__(self, path: Place, writer: StoreWriter, undo_s: float) -> None:
        self.undo_s = undo_s
        self._path, self._writer = path, writer
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._log_holds = False  # the write-ahead log may still hold what was deleted

    def due(self) -> Purged:
        """Delete for good what was deleted longer ago than the undo time; a run still under way is left.

        On return the file and its log hold nothing of it. Raises Unavailable if that cannot be done.
        """
        until = steady_clock.now() - self.undo_s
        return self._purge(lambda connection: purge.due(connection, until), until)

    def before(self, moment: datetime) -> Purged:
        """Delete all runs asked before `moment` for good, without an undo time; for owners."""
        people.require("delete")
        return self._purge(lambda connection: purge.asked_before(connection, _text(moment)))

    def count(self, moment: datetime) -> int:
        """Count the runs that `before` would delete. Raises Unavailable if the file cannot be read."""
        with reading(self._path) as connection:
            return len(purge.asked_before(connection, _text(moment)))

    def run(self) -> None:
        """Do what is due, and the rest when it is; what fails is logged and tried again."""
        now = steady_clock.now()
        try:
            self.due()
            with reading(self._path) as connection:
                waiting = next_due(connection)
        except Unavailable as error:
            log.warning("deleted runs are not permanently deleted yet: %s", error)
            self.later(AGAIN_S)
        else:
            if waiting is not None:
                left = waiting + self.undo_s - now
                # at most the whole time, should the clock have been set back; it still runs if none is left
                self.later(min(left, self.undo_s) if left > 0 else AGAIN_S)

    def later(self, seconds: float) -> None:
        """`run` after so many seconds, unless it will be run anyway."""
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._ring)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Leave what is not due yet to the next process that opens the file."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _ring(self) -> None:
        with self._lock:
            self._timer = None
        self.run()

    def _purge(self, choose: Callable[[sqlite3.Connection], list[int]], until: float = 0.0) -> Purged:
        def work(connection: sqlite3.Connection) -> tuple[Purged, int]:
            numbers = choose(connection)
            gone = purge.runs(connection, numbers) if numbers else Purged()
            return gone, named_rows.empty_trash(connection, until)

        gone, others = self._writer.do(work)
        if gone.runs or others or self._log_holds:
            self._log_holds = True
            try:
                empty_log(self._path)
            except sqlite3.Error as error:
                raise Unavailable(
                    f"{gone.runs} runs are deleted, but {self._path}-wal may still hold their text: {error}"
                ) from error
            self._log_holds = False
        return gone


def next_due(connection: sqlite3.Connection) -> float | None:
    """Return when what waits longest was deleted, in seconds since 1970; None if nothing waits."""
    sources = ("min(deleted) FROM runs WHERE deleted <> 0", "min(at) FROM trash")
    found = [connection.execute(f"SELECT {source}").fetchone()[0] for source in sources]
    return min((float(at) for at in found if at is not None), default=None)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
