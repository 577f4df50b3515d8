"""Traces as they come: spans are kept until their trace is whole, then stored as runs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.domain.errors import RouteScopeError
from core.engine.imported import ImportedTraces
from core.store.traces_in import MAX_TRACE, ForeignSpan, ForeignTrace, assembled, in_words, spans_of

QUIET_S = 2.0  # without another span after its root came, a trace is whole: exporters send in batches
PATIENCE_S = 60.0  # a trace whose root does not come is taken as it is
MAX_WAITING = 50_000  # spans that wait for the rest of their traces


@dataclass(slots=True)
class _Growing:
    spans: list[ForeignSpan] = field(default_factory=list)
    first: float = 0.0
    last: float = 0.0

    def whole(self, now: float) -> bool:
        rooted = any(not span.parent for span in self.spans)
        return now - self.first >= PATIENCE_S or (rooted and now - self.last >= QUIET_S)


class Collector:
    """A collector that accepts spans from any thread and passes whole traces to `take`, one call at a time.
    It reports each call to `said` in one line.
    """

    def __init__(
        self,
        take: Callable[[Sequence[ForeignTrace]], ImportedTraces],
        said: Callable[[str], None] = lambda _line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take, self._said, self._clock = take, said, clock
        self._lock = threading.Lock()
        self._growing: dict[str, _Growing] = {}
        self._waiting = 0
        self.received = self.stored = 0

    def add(self, document: Any) -> tuple[int, str]:
        """Add the spans of one OTLP request. Return the number rejected and the reason. Raises BadInput if
        the document is not an OTLP request.
        """
        skipped: Counter[str] = Counter()
        found = spans_of(document, skipped)
        rejected = +skipped
        now = self._clock()
        with self._lock:
            for span in found:
                own = self._growing.get(span.trace)
                if self._waiting >= MAX_WAITING:
                    rejected["spans while too many others wait; send them later"] += 1
                elif own is not None and len(own.spans) > MAX_TRACE:
                    rejected[f"spans of a trace of more than {MAX_TRACE:,}"] += 1
                else:
                    if own is None:
                        own = self._growing[span.trace] = _Growing(first=now)
                    own.spans.append(span)
                    own.last = now
                    self._waiting += 1
                    self.received += 1
        return rejected.total(), in_words(rejected)

    def store(self, *, all_of_them: bool = False) -> None:
        """Store the traces that are whole, or all."""
        now = self._clock()
        with self._lock:
            ids = [id for id, one in self._growing.items() if all_of_them or one.whole(now)]
            spans = [span for id in ids for span in self._growing.pop(id).spans]
            self._waiting -= len(spans)
        if not spans:
            return
        read = assembled(spans)
        try:
            found = self._take(read.traces)
        except RouteScopeError as error:
            self._said(f"{len(read.traces)} traces not stored: {error}")
            return
        found.skipped += read.skipped
        self.stored += len(found.runs)
        known = f"; {len(found.known)} already there" if found.known else ""
        left = f"; left out or mended: {found.left_out}" if found.left_out else ""
        last = found.runs[-1].query.text[:80] if found.runs else ""
        matching = f" ({last}). {found.matching.rstrip('.')}" if found.runs else ""
        self._said(f"{len(found.runs)} runs stored{matching}{known}{left}")

    def run(self, stop: threading.Event, every_s: float = 0.5) -> None:
        """Store traces as they become whole, until `stop`; then all that are there."""
        while not stop.wait(every_s):
            self.store()
        self.store(all_of_them=True)
