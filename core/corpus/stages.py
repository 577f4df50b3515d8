"""The stages of a build, with their times, progress and stops, and the lock under which it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from core.domain.errors import Cancelled

Progress = Callable[[str, int, int], None]  # stage, done, total (0: not known)
PAUSE = 0.1  # seconds between two reports
LOOK_S = 0.2  # between two looks at Stop while another process has the lock


@dataclass(slots=True)
class Stages:
    """Times the stages of a build, reports how far it is and ends it when it is cancelled."""

    progress: Progress
    cancel: threading.Event
    ms: dict[str, float] = field(default_factory=dict)
    _name: str = ""
    _told: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done inside under `name`."""
        began, self._name, self._told = time.perf_counter(), name, 0.0
        self.tick(0, 0)
        yield
        self.ms[name] = (time.perf_counter() - began) * 1000

    def taken(self) -> dict[str, float]:
        """Return the milliseconds of each stage."""
        return {name: round(ms, 1) for name, ms in self.ms.items()}

    def tick(self, done: int, total: int) -> None:
        """Report, a few times a second at most; raises Cancelled when Stop was pressed."""
        if self.cancel.is_set():
            raise Cancelled("indexing was stopped; the embeddings made so far are saved for next time")
        now = time.perf_counter()
        if now - self._told >= PAUSE or (done == total and total):
            self._told = now
            self.progress(self._name, done, total)


@contextmanager
def alone(file: Path, cancel: threading.Event) -> Iterator[None]:
    """Hold the lock `file`: two processes never build one thing at once. Raises Cancelled while waiting."""
    from filelock import FileLock, Timeout  # loads asyncio

    lock = FileLock(file)
    while not lock.is_locked:
        if cancel.is_set():
            raise Cancelled("stopped while waiting for another process that builds this corpus")
        with suppress(Timeout):
            lock.acquire(timeout=LOOK_S)
    try:
        yield
    finally:
        lock.release()
