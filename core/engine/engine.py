"""The engine of one process: its models, its corpora, and the runs that use them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from core.analysis import waits as recorded_waits
from core.analysis.answers import being_written
from core.backends.web import SNAPSHOT
from core.domain import people
from core.domain import settings as settings_module
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, ModelFailed, RouteScopeError, Unavailable
from core.domain.filters import described
from core.domain.models import PARAMETER
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import (
    AnswerBasis,
    AnswerStyle,
    Origin,
    Query,
    Ranking,
    Remembered,
    RouteResult,
    Run,
    TracedTuple,
)
from core.engine.contexts import ContextFactory
from core.engine.job import Job, with_answer
from core.engine.request import Answers, Mode, Request, RunPlan, clean, gather, keep_answer
from core.routes.declare import Route
from core.routes.registry import pick
from core.steps.generate import DEFAULT_SHOWN_PASSAGES
from core.steps.trace import Trace
from core.store import Store
from core.store.postgres import Dsn

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
    result = answerable(run, route)
    trace = Trace(route, max((span.id for span in result.spans), default=0) + 1, result.ms)
    started(trace)
    corpus = engine.corpus(run.corpus)
    do = engine.steps(corpus, cancel, trace=trace, answering=style)
    basis = result.basis or AnswerBasis(run.query.text, DEFAULT_SHOWN_PASSAGES)
    hits: Ranking = result.hits
    if result.origin is not None and result.origin.span is not None:
        start = result.origin.start
        hits = TracedTuple(hits, Origin(result.origin.span, start, start + len(hits)))
    with do.context.asker.asking():
        answer = do.answer(basis.question, hits, basis.excerpts, basis.shown)
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


log = logging.getLogger("routescope.engine")
PATIENCE_S = 0.5  # that who begins a run waits for its corpus: most are open, and an error is told at once


class Engine(ContextFactory):
    """The models and corpora of one process, and the jobs that use them. Safe to call from any thread."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        super().__init__(settings, store)
        self._own = object()  # tells its runs from those of another engine

    def start(self, request: Request) -> Job:
        """Begin a run in the background; raises BadInput, Unavailable or NotAllowed at once if it cannot be
        begun.
        """
        people.require("ask")
        plan = self._check(request)
        if request.models and any(asks_model(route, plan) for route in plan.routes):
            people.require("ask a model")
        job = Job(self, plan)
        if request.stored:
            return jobs.begin(Job, (self._own, job.id), lambda: job)
        job.begin()
        return job

    def ask(self, request: Request) -> Run:
        """Run and wait."""
        return self.start(request).wait()

    def job(self, run_id: str) -> Job | None:
        """Return a job of this process by its run's id, if it is still cached and was started by the current
        person.
        """
        found = jobs.latest(Job, (self._own, run_id))
        return found if found is not None and people.current().account in ("", found.person.account) else None

    def run(self, run_id: str) -> Run:
        """Return a run by its id, from a job in this process or from the store. Raises BadInput or
        Unavailable if there is none.
        """
        job = self.job(run_id)
        if job is not None:
            return job.snapshot()
        if self.store is None:
            raise Unavailable("runs are not stored here, so you can open only a run in progress")
        return self.store.load(run_id)

    def forget(self, run_id: str) -> None:
        """Keep no finished job of a run in memory, as it was deleted."""
        jobs.drop(Job, (self._own, run_id))

    def start_answer(self, run_id: str, route_name: str, style: AnswerStyle | None = None) -> Answering:
        """Begin to write the answer of one route of a finished run; asked again meanwhile, the same one.

        Raises BadInput at once if there is nothing to write, or another route's is being written.
        """

        people.require("ask a model" if style is None or style.by == "model" else "ask")

        def made() -> Answering:
            run = self.run(run_id)
            answerable(run, route_name)

            write = partial(self.add_answer, run, route_name, style)
            return Answering(run_id, route_name, write, self.settings.home)

        begun = jobs.begin(Answering, (self._own, run_id), made)
        if begun.route != route_name:
            raise BadInput(f"route {begun.route!r} is writing its answer; wait until it is finished")
        return begun

    def answering(self, run_id: str) -> Answering | None:
        """Return the latest answer started by `start_answer` for a run, running or ended."""
        return jobs.latest(Answering, (self._own, run_id))

    def add_answer(
        self,
        run: Run,
        route_name: str,
        style: AnswerStyle | None = None,
        started: Callable[[Trace], None] = lambda _trace: None,
        cancel: threading.Event | None = None,
    ) -> Run:
        """Write the answer of one route of a finished run; saves and returns the run. `started` is given the
        trace in which the text can be read while it is written. Raises Cancelled where `cancel` was set.
        """
        stop = cancel or threading.Event()
        changed = write_later(self, run, route_name, style or AnswerStyle(), started, stop)
        job = self.job(run.id)
        if job is not None:
            job.amend(next(result for result in changed.results if result.route == route_name))
        if self.store is not None:
            self.store.save(changed)
            try:
                keep_answer(self.store, changed)
            except RouteScopeError as error:  # the answer itself is written and saved
                log.warning("the answer of run %s was not added to its session: %s", run.id, error)
                if job is not None:
                    job.warnings.append(f"the answer was not added to the session: {error}")
        return changed

    def _check(self, request: Request) -> RunPlan:
        query, warnings = clean(request.query)
        routes = tuple(pick(list(request.routes)))
        names = {route.name for route in routes}
        for name in request.parameters:
            if name not in names:
                raise BadInput(f"parameters for {name!r}, which is not among the routes: {', '.join(names)}")
        parameters = {route.name: route.settle(request.parameters.get(route.name, {})) for route in routes}
        for route in routes:
            self.settings.with_model(parameters[route.name].get(PARAMETER, ""))  # raises for one that is not
        if request.answers not in get_args(Answers):
            raise BadInput(f"answers={request.answers!r}; give none, selected or all")
        if type(request.draw) is not int or request.draw < 0:
            raise BadInput(f"draw={request.draw!r}; give 0 or more")
        if request.mode not in (None, *get_args(Mode)):
            raise BadInput(f"mode={request.mode!r}; give live, record, replay or None")
        chosen = {"none": frozenset[str](), "selected": frozenset(request.answered), "all": frozenset(names)}
        memory = self._remembered(request.session, query, warnings)
        corpus = self.opening(request.corpus)
        wait([corpus], PATIENCE_S)
        if corpus.done():
            opened = corpus.result()  # raises where it cannot be opened
            allowed = opened.allowed(request.where)  # raises for a field that there is not
            if allowed is not None and not allowed.any():
                warnings.append(f"no passage of corpus {request.corpus} meets {described(request.where)}")
        web = request.models and any(Need.WEB in (*route.every_need, *route.uses) for route in routes)
        if web and self.settings.web_search != SNAPSHOT:  # stored pages are a corpus, opened when it begins
            self.web()  # raises for an address that is none
        return RunPlan(
            replace(request, query=query),
            routes,
            parameters,
            chosen[request.answers],
            corpus,
            web,
            tuple(warnings),
            memory,
        )

    def _remembered(self, session: str, query: Query, warnings: list[str]) -> tuple[Remembered, ...]:
        """All turns before the question; a session that cannot be read is a warning."""
        stored: tuple[Remembered, ...] = ()
        if session:
            from core.store.memory import check_session

            check_session(session)
            try:
                if self.store is None:
                    raise Unavailable("runs are not stored here")
                stored = self.store.recall(session)
            except Unavailable as error:
                warnings.append(f"session {session} is not available: {error}")
        return gather(stored, query.history)


def asks_model(route: Route, plan: RunPlan) -> bool:
    """Return True if a route of a request calls a language model, for its passages or its answer; an external
    pipeline may.
    """
    asks = route.external or route.asks(plan.parameters[route.name])
    return asks or (route.name in plan.answered and plan.request.style.by == "model")


_shared: list[Engine] = []  # at most one
_sharing = threading.Lock()


def place(settings: Settings) -> Path | Dsn:
    """Return the location of stored runs and labels."""
    address = settings.database.get_secret_value() if settings.database else ""
    return Dsn(address) if address else settings.home / "routescope.sqlite"


def shared_engine() -> Engine:
    """Return the one engine of this process, with the store of its home folder."""
    with _sharing:
        if not _shared:
            # one query is searched twice as fast by one thread as by two
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            settings = settings_module.current()
            undo_s = 60 * settings.delete_undo_minutes
            store = Store(place(settings), undo_s)
            people.keep_in(store)
            _shared.append(Engine(settings, store))
        return _shared[0]


def reload_engine() -> Engine:
    """Replace the engine by one with the current settings; running jobs keep theirs.

    Raises BadInput for invalid settings, and keeps the engine.
    """
    before = shared_engine()
    settings_module.current.cache_clear()
    now = Engine(settings_module.current(), before.store)
    now._own = before._own
    if now.store is not None:
        now.store.deletion.undo_s = 60 * now.settings.delete_undo_minutes
    with _sharing:
        _shared[:] = [now]
    return now
