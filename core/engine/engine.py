"""The engine of one process: its models, its corpora, and the runs that use them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import get_args

from core.backends.web import SNAPSHOT
from core.domain import people
from core.domain import settings as settings_module
from core.domain.background_job import jobs
from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.domain.filters import described
from core.domain.models import PARAMETER
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import AnswerStyle, Query, Remembered, Run
from core.engine.contexts import ContextFactory
from core.engine.job import Job
from core.engine.late_answers import Answering, answerable, write_later
from core.engine.request import Answers, Mode, Request, RunPlan, clean, gather, keep_answer
from core.routes.declare import Route
from core.routes.registry import pick
from core.steps.trace import Trace
from core.store import Store
from core.store.postgres import Dsn

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
        job = Job(self, request, plan)
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
            query,
            routes,
            parameters,
            chosen[request.answers],
            request.corpus,
            corpus,
            web,
            tuple(warnings),
            request.session,
            memory,
            request.style.by == "model",
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
    return asks or (route.name in plan.answered and plan.by_model)


_shared: list[Engine] = []  # at most one
_sharing = threading.Lock()


def place(settings: Settings) -> Path | Dsn:
    """Return the location of stored runs and labels."""
    from core.store.postgres import Dsn

    address = settings.database.get_secret_value() if settings.database else ""
    return Dsn(address) if address else settings.home / "routescope.sqlite"


def shared_engine() -> Engine:
    """Return the one engine of this process, with the store of its home folder."""
    with _sharing:
        if not _shared:
            # one query is searched twice as fast by one thread as by two
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            from core.store import Store

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
