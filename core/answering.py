"""An answer written later, in a thread of its own: no page has to stay open for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import BadInput, RouteScopeError
from core.reading import excerpts, question
from core.reading_answers import being_written
from core.trace import Trace, describe
from core.types import AnswerStyle, RouteResult, Run

if TYPE_CHECKING:
    from core.engine import Engine

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
        return being_written(self._trace.spans()) if self._trace is not None else ""

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


def write_later(
    engine: Engine, run: Run, route: str, style: AnswerStyle, started: Callable[[Trace], None]
) -> Run:
    """The finished `run` with an answer of `route`, as spans appended to its own; saves nothing."""
    from core.steps import Memo, Steps
    from core.steps.generate import SHOWN

    result = answerable(run, route)
    trace = Trace(route, max((span.id for span in result.spans), default=0) + 1, result.ms)
    started(trace)
    corpus = engine.corpus(run.corpus)
    context = engine.context(corpus, None, trace, Memo(), threading.Event(), answering=style)
    kept = excerpts(result)  # of the first hits
    with context.asker.asking():
        answer = Steps(context).answer(question(run, result), result.hits, kept, len(kept) or SHOWN)
    added = replace(
        result,
        answer=answer.text,
        citations=answer.citations,
        abstained=answer.abstained,
        spans=(*result.spans, *trace.spans()),
        ms=trace.now(),
    )
    return replace(run, results=tuple(added if one is result else one for one in run.results))


def answerable(run: Run, route_name: str) -> RouteResult:
    """The result that an answer can be added to; BadInput says why there is none."""
    if run.status == "running":
        raise BadInput(f"run {run.id} is still under way; an answer can be added when it has ended")
    result = next((r for r in run.results if r.route == route_name), None)
    if result is None or result.status != "ok":
        raise BadInput(f"route {route_name!r} has no finished result in run {run.id}")
    if not result.hits:
        raise BadInput(f"route {route_name!r} found nothing in run {run.id} to answer from")
    if result.answer is not None:
        raise BadInput(f"route {route_name!r} has its answer already in run {run.id}")
    return result
