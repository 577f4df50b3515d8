"""Processes that run queries: killed when the time of a query is up or it is stopped, else used again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.backends.pipes import LinePipes, ProcessGone
from core.backends.sql.guard import SqlFailed, TooBig, too_slow
from core.domain import system
from core.domain.errors import Unavailable

ROOT = (
    Path(__file__).resolve().parents[3]
)  # where `core` is; the settings are not imported, as they take long
MAX_IDLE_PROCESSES = 2  # idle processes of one database
START_S = 30.0  # a process that says nothing for so long is given up
GRACE_S = 0.1  # a query that SQLite can interrupt ends by itself, and its process is kept


class Workers:
    """The processes of one database. Safe in threads: each query has a process for itself."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _end, self._idle)

    def ask(
        self,
        request: Mapping[str, Any],
        *,
        seconds: float,
        most: int,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Return the process's answer, within `seconds` and `most` bytes.

        Raises TooSlow, TooBig, SqlFailed if the query was stopped or crashed its process, Unavailable if no
        process can be started.
        """
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            used = worker is not None  # it may have ended by itself, unused for long
            worker = worker or Worker(self._source, cancelled)
            try:
                found = worker.ask(request, seconds, most, cancelled)
            except ProcessGone:
                worker.kill()
                if not used:
                    raise SqlFailed("the query crashed the query process") from None
            except BaseException:
                worker.kill()
                raise
            else:
                with self._lock:
                    self._idle.append(worker)
                    ended = self._idle.pop(0) if len(self._idle) > MAX_IDLE_PROCESSES else None
                if ended:
                    ended.kill()
                return found


class Worker:
    """One process over a database."""

    def __init__(self, source: Path | bytes, cancelled: Callable[[], bool]) -> None:
        """Start it and wait until it takes requests; raises Unavailable, or SqlFailed when stopped."""
        command = [sys.executable, "-m", "core.backends.sql.child"]
        env = {name: os.environ[name] for name in system.NEEDED if name in os.environ}
        held = source if isinstance(source, bytes) else b""
        first = {"bytes": len(held)} if isinstance(source, bytes) else {"path": str(source.resolve())}
        try:
            self._pipes = LinePipes(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise Unavailable(f"cannot start the query process: {error}") from None
        self.kill = self._pipes.kill
        try:
            self._pipes.send(json.dumps(first).encode() + b"\n" + held)
            self._reply(START_S, 1_000, cancelled)
        except BaseException as error:
            self.kill()
            if isinstance(error, ProcessGone | TooBig | TimeoutError):
                why = "cannot start the query process: it ended or did not respond"
                raise Unavailable(why) from None
            raise

    def ask(
        self, request: Mapping[str, Any], seconds: float, most: int, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """Answer a request; after any exception the process must be killed."""
        self._pipes.send(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
        try:
            return self._reply(seconds + GRACE_S, most, cancelled)
        except TimeoutError:
            raise too_slow(seconds) from None

    def _reply(self, seconds: float, most: int, cancelled: Callable[[], bool]) -> dict[str, Any]:
        """Return the next line. Raises TimeoutError, ProcessGone, TooBig, and SqlFailed if stopped."""

        def check() -> None:
            if cancelled():
                raise SqlFailed("the query was stopped")

        too_long = TooBig(f"the result has more than {most} bytes")
        found: dict[str, Any] = json.loads(self._pipes.line(seconds, most, too_long, check))
        return found


def _end(idle: list[Worker]) -> None:
    for worker in idle:
        worker.kill()
