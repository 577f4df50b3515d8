"""Work in the background of this process: followed, stopped, listed in one place, forgotten when old."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast
from weakref import WeakValueDictionary

from core.domain import people
from core.domain.errors import Cancelled, RouteScopeError, describe

log = logging.getLogger("routescope.jobs")
State = Literal["under way", "done", "stopped", "failed"]
owner: ContextVar[str] = ContextVar("owner", default="")  # the session that begins work here


class BackgroundJob(ABC):
    """`finished` of `total` parts are done, `stage` says which; `error` says what ended it early, if anything
    did. `home` is the folder whose work it is, None for that of any.

    A subclass does it in `_do`, which sets `finished` and looks at `_cancel` between parts, or raises
    Cancelled. It needs no page to stay open, and nobody has to look.
    """

    kind: ClassVar[str]  # in a word, for lists
    private: ClassVar[bool] = False  # whether it is told to nobody but who began it
    deed: ClassVar[people.Deed] = "edit"  # what beginning it is, and stopping another person's
    kept: ClassVar[int] = 16  # of its kind that are remembered after their end
    forgotten_s: ClassVar[float] = 3600.0  # how long after its end, or after somebody looked last
    resumes: bool = False  # whether it continues what another job, of another person even, began

    def __init__(self, title: str, total: int = 0, home: Path | None = None) -> None:
        self.id = secrets.token_hex(8)
        self.title, self.home, self.owner = title, home, owner.get()
        self.person = people.current()  # on whose behalf it works
        self.started = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.stage, self.total = "", total
        self.error: str | None = None
        self.listed = True  # False while it only waits for another job, which is listed
        self._stopped = False
        self._cancel, self._at_end = threading.Event(), threading.Event()
        self._began, self._over = time.perf_counter(), 0.0
        self._finished, self._moved = 0, self._began

    @property
    def finished(self) -> int:
        """Return how many parts are done."""
        return self._finished

    @finished.setter
    def finished(self, parts: int) -> None:
        if parts != self._finished:
            self._finished, self._moved = parts, time.perf_counter()

    @property
    def done(self) -> bool:
        """Return True if the job has ended: completed, stopped, or with an error."""
        return self._at_end.is_set()

    @property
    def cancelled(self) -> bool:
        """Return True if the job was stopped before its end."""
        return self._stopped or (self._cancel.is_set() and self.finished < self.total)

    @property
    def complete(self) -> bool:
        """Return True if the job ended normally."""
        return self.done and self.error is None and not self.cancelled

    @property
    def state(self) -> State:
        """Return the job's state in one word."""
        if not self.done:
            return "under way"
        return "failed" if self.error is not None else "stopped" if self.cancelled else "done"

    @property
    def result(self) -> Any:
        """Return the result so far; None for jobs with side effects only."""
        return None

    @property
    def seconds(self) -> float:
        """Return the running time in seconds."""
        return (self._over or time.perf_counter()) - self._began

    @property
    def left(self) -> float | None:
        """Return about how many seconds are left, by what the finished parts took; None before the first,
        and once the part under way takes longer than that. It never grows while a part is under way.
        """
        if self.done or not self.finished:
            return None
        each, parts = (self._moved - self._began) / self.finished, self.total - self.finished
        left = max(each * parts - (time.perf_counter() - self._moved), each * (parts - 1))
        return left if left > 0 else None

    @property
    def share(self) -> float:
        """Return the share done, 0 to 1."""
        return min(1.0, self.finished / self.total) if self.total else 0.0

    def cancel(self) -> None:
        """Stop at the next place where it can; what is done stays. Raises NotAllowed for a person who neither
        began it nor may edit.
        """
        if people.current().account != self.person.account:
            people.require("edit")
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> object:
        """Wait up to `timeout` seconds. Return True if the job has ended; a subclass may return its
        result.
        """
        return self._at_end.wait(timeout)

    def begin(self) -> None:
        """Start the thread."""
        self._began, self._over = time.perf_counter(), 0.0
        threading.Thread(target=self._work, name=f"{self.kind}-{self.id}", daemon=True).start()

    @abstractmethod
    def _do(self) -> None:
        """All of it."""

    def _work(self) -> None:
        try:
            with people.acting(self.person):
                self._do()
        except Cancelled:
            self._stopped = True
        except RouteScopeError as error:
            self.error = describe(error)
        except Exception as error:
            log.exception("%s: %s", self.kind, self.title)
            self.error = describe(error)
        finally:
            self._over = time.perf_counter()
            self._at_end.set()


J = TypeVar("J", bound=BackgroundJob)
Key = tuple[type[BackgroundJob], Hashable]


class Jobs:
    """The background jobs of a process, the latest of each kind for each key. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Key, BackgroundJob] = OrderedDict()  # the one looked at longest ago first
        self._looked: dict[Key, float] = {}
        self._making: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()

    def begin(
        self,
        kind: type[J],
        key: Hashable,
        make: Callable[[], J],
        same: Callable[[J], bool] = lambda job: not job.done,
    ) -> J:
        """Return the known job if it is the `same` (by default: not ended yet), else start a new one.

        Raises NotAllowed if the current person's role does not allow this kind, and any error of `make`. A
        slow `make` does not block other jobs.
        """
        people.require(kind.deed)
        job, fresh = self._given(kind, key, make, same)
        if fresh:
            job.begin()
            if not kind.private:
                people.record(f"{kind.kind} {'resumed' if job.resumes else 'begun'}", job.title)
        return job

    def keep(self, kind: type[J], key: Hashable, make: Callable[[], J]) -> J:
        """Return the known job, else a new one without starting it."""
        people.require(kind.deed)
        return self._given(kind, key, make, lambda _: True)[0]

    def latest(self, kind: type[J], key: Hashable) -> J | None:
        """Return the job started last, running or ended, or None if it was dropped."""
        with self._lock:
            self._forget()
            found = self._jobs.get((kind, key))
            if found is not None:
                self._look((kind, key))
            return cast("J | None", found)

    def known(self) -> list[BackgroundJob]:
        """All that are remembered, in the order they were begun."""
        with self._lock:
            self._forget()
            return sorted(self._jobs.values(), key=lambda job: job.started)

    def under_way(self, home: Path | None = None) -> list[BackgroundJob]:
        """Those that have not ended, of a home or of all, in the order they were begun."""
        return [job for job in self.known() if not job.done and (home is None or job.home in (None, home))]

    def drop(self, kind: type[J], key: Hashable) -> None:
        """Forget a job that has ended."""
        with self._lock:
            known = self._jobs.get((kind, key))
            if known is not None and known.done:
                del self._jobs[kind, key], self._looked[kind, key]

    def clear(self) -> None:
        """Forget all, as another process knows nothing of it; what is under way goes on."""
        with self._lock:
            self._jobs.clear()
            self._looked.clear()

    def _given(
        self, kind: type[J], key: Hashable, make: Callable[[], J], same: Callable[[J], bool]
    ) -> tuple[J, bool]:
        whole = (kind, key)
        with self._lock:
            making = self._making.setdefault(whole, threading.Lock())
        with making:  # two who begin the same at once begin one
            known = self.latest(kind, key)
            if known is not None and same(known):
                return known, False
            made = make()
            with self._lock:
                self._jobs[whole] = made
                self._look(whole)
                self._forget()
            return made, True

    def _look(self, key: Key) -> None:
        self._jobs.move_to_end(key)
        self._looked[key] = time.monotonic()

    def _forget(self) -> None:
        """Drop what has ended and is old, or one of too many of its kind."""
        now, kept = time.monotonic(), Counter[type[BackgroundJob]]()
        for key, job in reversed(list(self._jobs.items())):
            if not job.done:
                continue
            kept[key[0]] += 1
            idle = min(now - self._looked[key], time.perf_counter() - job._over)
            if kept[key[0]] > job.kept or idle > job.forgotten_s:
                del self._jobs[key], self._looked[key]


jobs = Jobs()  # of this process
