"""Work in a thread of its own that somebody follows, waits for or stops."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

from core.errors import Cancelled
from core.trace import describe


class Work(ABC):
    """`finished` of `total` parts are done; `error` says what ended it early, if anything did.

    A subclass does it in `_do`, which sets `finished` and looks at `_cancel` between parts, or raises
    Cancelled. It needs no page to stay open, and nobody has to look.
    """

    def __init__(self, name: str, total: int = 0) -> None:
        self.finished, self.total = 0, total
        self.error: str | None = None
        self._thread = name
        self._cancel, self._ended = threading.Event(), threading.Event()
        self._began, self._over = time.perf_counter(), 0.0

    @property
    def done(self) -> bool:
        """Whether it has ended: with all parts, stopped, or with an error."""
        return self._ended.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped before its end."""
        return self._cancel.is_set() and self.finished < self.total

    @property
    def complete(self) -> bool:
        """Whether it came to its end."""
        return self.done and self.error is None and not self.cancelled

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self._over or time.perf_counter()) - self._began

    @property
    def left(self) -> float | None:
        """Seconds until its end, by what a part took so far; None before the first and when it has ended."""
        if self.done or not self.finished:
            return None
        return self.seconds / self.finished * (self.total - self.finished)

    def cancel(self) -> None:
        """Stop at the next place where it can; what is done stays."""
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has ended within `timeout` seconds."""
        return self._ended.wait(timeout)

    def begin(self) -> None:
        """Start the thread."""
        self._began, self._over = time.perf_counter(), 0.0
        threading.Thread(target=self._work, name=self._thread, daemon=True).start()

    @abstractmethod
    def _do(self) -> None:
        """All of it."""

    def _work(self) -> None:
        try:
            self._do()
        except Cancelled:
            self._cancel.set()
        except Exception as error:  # noqa: BLE001 - whatever ends it is told to who looks at it
            self.error = describe(error)
        finally:
            self._over = time.perf_counter()
            self._ended.set()
