"""An answer written later, in a thread of its own: no page has to stay open for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.analysis import waits as recorded_waits
from core.analysis.answers import being_written
from core.domain.background_job import BackgroundJob
from core.domain.errors import BadInput, ModelFailed
from core.domain.types import AnswerBasis, AnswerStyle, Origin, Ranking, RouteResult, Run, TracedTuple
from core.engine.contexts import ContextFactory
from core.engine.job import with_answer
from core.steps.trace import Trace

Write = Callable[[Callable[[Trace], None], threading.Event], object]


class Answering(BackgroundJob):
    """The answer of one route of one run: under way, or how it ended. `write` makes it, and is given where
    the text can be read while it is written, and what stops it.
    """

    kind = "answer"
    private = True
    deed = "ask"
    kept = 50

    def __init__(self, run_id: str, route: str, write: Write, home: Path) -> None:
        super().__init__(route, 1, home)
        self.run_id, self.route = run_id, route
        self._write = write
        self._trace: Trace | None = None

    def _follow(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def text(self) -> str:
        """Return the text written so far."""
        return being_written(self._trace.spans()) if self._trace is not None else ""

    @property
    def waits(self) -> str:
        """Describe what the answer waits for; "" if nothing."""
        return recorded_waits.now(self._trace.spans()) if self._trace is not None else ""

    def _do(self) -> None:
        self._write(self._follow, self._cancel)
        self.finished = 1


def write_later(
    engine: ContextFactory,
    run: Run,
    route: str,
    style: AnswerStyle,
    started: Callable[[Trace], None],
    cancel: threading.Event,
) -> Run:
    """Add an answer of `route` to the finished `run`, as spans appended to its own; saves nothing."""
    from core.steps import Memo, Steps
    from core.steps.generate import DEFAULT_SHOWN_PASSAGES

    result = answerable(run, route)
    trace = Trace(route, max((span.id for span in result.spans), default=0) + 1, result.ms)
    started(trace)
    corpus = engine.corpus(run.corpus)
    context = engine.context(corpus, None, trace, Memo(), cancel, answering=style)
    basis = result.basis or AnswerBasis(run.query.text, DEFAULT_SHOWN_PASSAGES)
    hits: Ranking = result.hits
    if result.origin is not None and result.origin.span is not None:
        start = result.origin.start
        hits = TracedTuple(hits, Origin(result.origin.span, start, start + len(hits)))
    with context.asker.asking():
        answer = Steps(context).answer(basis.question, hits, basis.excerpts, basis.shown)
    if answer.error is not None:
        raise ModelFailed(answer.error)
    answered = with_answer(result, trace, replace(answer, basis=result.basis))
    added = replace(answered, spans=(*result.spans, *trace.spans()), ms=trace.now())
    return replace(run, results=tuple(added if one is result else one for one in run.results))


def answerable(run: Run, route_name: str) -> RouteResult:
    """Return the result that an answer can be added to. Raises BadInput with the reason if there is none."""
    if run.status == "running":
        raise BadInput(f"run {run.id} is still running; add an answer when it has finished")
    result = next((r for r in run.results if r.route == route_name), None)
    if result is None or result.status != "ok":
        raise BadInput(f"route {route_name!r} has no finished result in run {run.id}")
    if not result.hits:
        raise BadInput(f"route {route_name!r} has no passages in run {run.id} to answer from")
    if result.answer is not None:
        raise BadInput(f"route {route_name!r} already has an answer in run {run.id}")
    return result
