"""An answer written later, in a thread of its own: no page has to stay open for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from core.errors import RouteScopeError
from core.trace import Trace, describe

_LOG = logging.getLogger(__name__)


class Answering:
    """The answer of one route of one run: under way, or how it ended."""

    def __init__(self, run_id: str, route: str) -> None:
        self.run_id, self.route = run_id, route
        self.error: str | None = None  # one line, where it came to nothing
        self._finished = threading.Event()
        self._began = time.perf_counter()
        self._ended: float | None = None
        self._trace: Trace | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._finished.is_set()

    @property
    def elapsed(self) -> float:
        """Seconds since it began; once it has ended, those it took."""
        return (self._ended or time.perf_counter()) - self._began

    def begin(self, write: Callable[[], object]) -> None:
        """Start the thread; `write` makes the answer and stores the changed run."""
        name = f"answer-{self.run_id}"
        threading.Thread(target=self._work, args=(write,), name=name, daemon=True).start()

    def follow(self, trace: Trace) -> None:
        """Note where the answer is being written."""
        self._trace = trace

    @property
    def text(self) -> str:
        """What has been written so far."""
        spans = self._trace.spans() if self._trace is not None else ()
        return next((s.output for s in reversed(spans) if s.kind == "LLM" and isinstance(s.output, str)), "")

    def wait(self, timeout: float | None = None) -> bool:
        """Until it has ended; False if that took longer than `timeout` seconds."""
        return self._finished.wait(timeout)

    def _work(self, write: Callable[[], object]) -> None:
        try:
            write()
        except RouteScopeError as error:
            self.error = describe(error)
        except Exception as error:  # noqa: BLE001 - shown on the page; a thread has nobody else to tell
            _LOG.exception("writing the answer of %s in run %s", self.route, self.run_id)
            self.error = describe(error)
        finally:
            self._ended = time.perf_counter()
            self._finished.set()
