"""A recorder of one route's steps, on a clock that measures the time the route would take alone."""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from core.domain.errors import describe
from core.domain.outputs import NOTHING, Output
from core.domain.types import Hit, Link, Passage, Ranking, Reuse, Scored, Span, SpanKind, Tokens

T = TypeVar("T")
_SPAN_FIELDS = [one.name for one in fields(Span) if one.name != "ms"]


@dataclass(slots=True)
class _Branch:
    """One thread of a route: where it is in the tree, and how far its own clock is ahead of the wall's."""

    skew: float = 0.0
    parent: int | None = None
    path: tuple[int, ...] = ()  # where it forked: puts its spans in their place among all


@dataclass(slots=True)
class OpenSpan:
    """A step under way; the step fills in what it found."""

    id: int
    parent: int | None
    name: str
    kind: SpanKind
    start_ms: float
    args: dict[str, Any]
    links: tuple[Link, ...] = ()
    set_by: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    output: Output | None = None
    hits: Scored | None = None
    tokens: Tokens | None = None
    cost: float | None = None
    calls: int = 0
    shared_with: str | None = None
    cached: Reuse | None = None
    error: str | None = None
    original_ms: float | None = None  # the full time of work that was done elsewhere or earlier
    cut_short: bool = False  # by the route's own budget, time or Stop: another route may get further

    def close(self, ms: float) -> Span:
        """Return the finished span; `args` and `attributes` become plain JSON values, so that a stored Run
        equals itself.
        """
        own = {name: getattr(self, name) for name in _SPAN_FIELDS}
        own["args"], own["attributes"] = plain(self.args), plain(self.attributes)
        return Span(**own | {"ms": ms, "output": self.output or NOTHING})


@dataclass(slots=True)
class Trace:
    """The spans of one route, readable while the route still runs."""

    owner: str = ""
    first_id: int = 1
    offset_ms: float = 0.0  # where it begins on the route's clock: later than 0 if it continues a stored one
    _t0: float = field(default_factory=lambda: time.perf_counter())
    _done: dict[int, Span] = field(default_factory=dict)
    _place: dict[int, tuple[int, ...]] = field(default_factory=dict)  # sort key of each span
    _open: dict[int, OpenSpan] = field(default_factory=dict)
    _on: dict[int, _Branch] = field(default_factory=dict)  # the branch of each open span: its clock
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = field(init=False)
    _made: dict[int, tuple[object, int]] = field(default_factory=dict)
    passages: dict[str, Passage] = field(default_factory=dict)  # of all lists that steps made
    _branch: ContextVar[_Branch] = field(default_factory=lambda: ContextVar("branch"))
    _root: _Branch = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.first_id
        self._root = _Branch(skew=self.offset_ms)

    def begin(self) -> None:
        """Start the clock again: what came before is no part of the route."""
        self._t0 = time.perf_counter()

    def now(self) -> float:
        """Milliseconds on this route's own clock: wall time, with reused work counted at its full time."""
        return self._wall() + self._here().skew

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind,
        args: Mapping[str, Any] | None = None,
        links: tuple[Link, ...] = (),
        set_by: Mapping[str, str] | None = None,
    ) -> Iterator[OpenSpan]:
        """Record one step; an exception is noted on the span and goes on."""
        here = self._here()
        with self._lock:
            opened = OpenSpan(
                self._next, here.parent, name, kind, self.now(), dict(args or {}), links, dict(set_by or {})
            )
            self._next += 1
            self._open[opened.id] = opened
            self._place[opened.id] = (*here.path, opened.id)
            self._on[opened.id] = here
        here.parent = opened.id
        try:
            yield opened
        except BaseException as error:
            opened.error = opened.error or describe(error)
            raise
        finally:
            if opened.original_ms is not None:
                here.skew = opened.start_ms + opened.original_ms - self._wall()
            here.parent = opened.parent
            with self._lock:
                own = self.now() - opened.start_ms
                self._done[opened.id] = opened.close(
                    own if opened.original_ms is None else opened.original_ms
                )
                del self._open[opened.id], self._on[opened.id]

    def parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run `calls` in threads of their own; afterwards the clock stands where the slowest ended."""
        if len(calls) < 2:
            return [call() for call in calls]
        here = self._here()
        with self._lock:
            fork = (*here.path, self._next)
        results: dict[int, T] = {}
        errors: dict[int, BaseException] = {}
        ends: list[float] = []

        def work(index: int, call: Callable[[], T]) -> None:
            self._branch.set(_Branch(here.skew, here.parent, (*fork, index)))
            try:
                results[index] = call()
            except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
                errors[index] = error
            ends.append(self.now())

        threads = [
            threading.Thread(target=copy_context().run, args=(work, i, call), daemon=True)
            for i, call in enumerate(calls)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        here.skew = max(ends) - self._wall()
        if errors:
            raise errors[min(errors)]
        return [results[i] for i in range(len(calls))]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Exclude the time spent inside from the route's clock, such as loading a model once per process."""
        here, before = self._here(), self._wall()
        try:
            yield
        finally:
            here.skew -= self._wall() - before

    def stand_at(self, ms: float) -> None:
        """Set this branch's clock, excluding time that passed outside the route."""
        self._here().skew = ms - self._wall()

    def current(self) -> OpenSpan:
        """Return the innermost open step of this thread. Raises LookupError if there is none."""
        parent = self._here().parent
        if parent is None:
            raise LookupError("no step is under way")
        return self._open[parent]

    def cut_short(self) -> None:
        """Note on all steps under way in this thread that the route's own limits were met within them."""
        parent = self._here().parent
        with self._lock:
            while parent is not None and (opened := self._open.get(parent)) is not None:
                opened.cut_short = True
                parent = opened.parent

    def find(self, id: int) -> Span:
        """Return a finished span by its id."""
        return self._done[id]

    def below(self, id: int) -> list[Span]:
        """Return the finished span `id` and all spans inside it."""
        inside = {id}
        with self._lock:
            for span in sorted(self._done.values(), key=lambda span: span.id):
                if span.parent in inside:
                    inside.add(span.id)
            return [self._done[i] for i in sorted(inside)]

    def remember(self, result: object, id: int) -> None:
        """Note that span `id` made `result`, an object that cannot say so itself."""
        self._made[builtins.id(result)] = (result, id)

    def made(self, result: object) -> int | None:
        """Return the span that produced this very object, or None."""
        known = self._made.get(builtins.id(result))
        return known[1] if known else None

    def keep(self, ranking: Ranking) -> None:
        """Keep the passages of a list that a step made: not all are of the corpus."""
        known = self.passages
        for hit in ranking:
            if hit.passage.id not in known:
                known[hit.passage.id] = hit.passage

    def spans(self) -> tuple[Span, ...]:
        """All spans so far in the order they began, parallel branches one after another; one still open has
        its time so far.
        """
        with self._lock:
            wall = self._wall()
            running = [
                o.close(max(0.0, wall + self._on[o.id].skew - o.start_ms)) for o in self._open.values()
            ]
            return tuple(sorted([*self._done.values(), *running], key=lambda span: self._place[span.id]))

    def abandon(self, reason: str) -> tuple[Span, ...]:
        """Return the spans of a route that did not end in time, each open one marked with `reason`."""
        with self._lock:
            for opened in self._open.values():
                opened.error = opened.error or reason
        return self.spans()

    def _wall(self) -> float:
        return (time.perf_counter() - self._t0) * 1000

    def _here(self) -> _Branch:
        return self._branch.get(self._root)


def plain(value: Any) -> Any:
    """Convert `value` to JSON values (dict, list, str, float, int, bool, None); a vector becomes its size."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if isinstance(value, np.ndarray):
        return f"{'x'.join(map(str, value.shape))} vector"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Passage | Enum):
        return value.id if isinstance(value, Passage) else value.name.lower()
    if isinstance(value, Hit):
        return [value.passage.id, value.score]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)
