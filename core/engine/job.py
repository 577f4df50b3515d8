"""A run under way: its threads, its routes one by one, and what each came to."""

from __future__ import annotations

import math
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from core.backends.admission import Asker
from core.backends.base import WebSearch
from core.backends.llm.model import clean_url
from core.corpus.index import Corpus
from core.domain import errors, people
from core.domain.background_job import BackgroundJob
from core.domain.errors import RouteScopeError, describe
from core.domain.models import PARAMETER
from core.domain.settings import Settings
from core.domain.types import ASKED_BY, Answer, Link, Passage, RouteResult, Run, Span, Status, TracedTuple
from core.engine.contexts import ContextFactory
from core.engine.request import FILTERS, RunPlan, keep
from core.routes.declare import EMBEDDER, Route
from core.steps import Memo, Steps
from core.steps.trace import Trace

GRACE_S = 2.0  # a route is abandoned this long after its deadline, or Stop: its own checks come first
LOOK_S = 0.1  # between looks at a route under way
ENDINGS: tuple[tuple[tuple[type[Exception], ...], Status], ...] = (
    ((errors.Unavailable,), "unavailable"),
    ((errors.Cancelled,), "cancelled"),
    ((errors.Stopped, errors.ModelTimedOut, errors.PipelineTimedOut), "timeout"),
)
Progress = tuple[str, Literal["waiting", "running"], tuple[Span, ...]]


class Job(BackgroundJob):
    """A run under way in threads of its own: it needs no page to stay open."""

    kind = "question"
    private = True
    deed = "ask"
    kept = 32  # each holds some megabytes; of others the store tells
    forgotten_s = 600.0

    def __init__(self, engine: ContextFactory, plan: RunPlan) -> None:
        request = plan.request
        super().__init__(request.query.text, len(plan.routes), engine.settings.home)
        self.id = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"  # sorts by time
        self.warnings: list[str] = list(plan.warnings)
        self._engine, self._request, self._plan = engine, request, plan
        self._lock = threading.Lock()
        self._memos: dict[str, Memo] = {}  # by whose vectors the routes use
        self._results: dict[str, RouteResult] = {}
        self._traces: dict[str, Trace] = {}
        self._passages: dict[str, Passage] = {}  # of all lists that the steps of ended routes made
        self._wall_ms = 0.0
        self._whole = False
        self._corpus: Corpus | None = None
        self._web: WebSearch | None = None
        llm = engine.llm()
        self._one_by_one = llm.local
        self._run = Run(
            id=self.id,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            query=request.query,
            corpus=request.corpus,
            fingerprint="",
            settings={
                "routes": [route.name for route in plan.routes],
                "answers": request.answers,
                "answered": sorted(plan.answered),
                "answers by": request.style.by,
                "answer order": request.style.order,
                "timing": request.timing,
                "session": request.session,
                "routes ran": "one after another" if self._one_by_one else "side by side",
                "llm": llm.model,
                "llm endpoint": llm.endpoint,
                "models": _models(engine.settings, plan),
                "llm mode": request.mode or engine.settings.llm_mode,
                "embedder": "",
                **({ASKED_BY: self.person.account} if self.person.account else {}),
                **({FILTERS: list(map(str, request.where))} if request.where else {}),
                **({"draw": request.draw} if request.draw else {}),
                **({"forced": dict(request.forced)} if request.forced else {}),
            },
            status="running",
        )
        if plan.opening.done():
            self._opened(plan.opening.result())

    @property
    def cancelled(self) -> bool:
        """Return True if some route was stopped."""
        return self._whole and any(one.status == "cancelled" for one in list(self._results.values()))

    @property
    def left(self) -> None:
        """Estimate nothing: the slowest routes come last, so the past speed does not predict the rest."""
        return

    @property
    def result(self) -> Run:
        """The run so far."""
        return self.snapshot()

    def wait(self, timeout: float | None = None) -> Run:
        """Wait for the finished run. Raises TimeoutError after `timeout` seconds."""
        if not self._at_end.wait(timeout):
            raise TimeoutError(f"run {self.id} did not finish within {timeout} s")
        return self.snapshot()

    def snapshot(self) -> Run:
        """Return the run so far, with finished routes in the requested order."""
        with self._lock:
            results = tuple(self._results[r.name] for r in self._plan.routes if r.name in self._results)
            status: Literal["running", "done", "cancelled"] = "running"
            if self._whole:
                status = "cancelled" if any(r.status == "cancelled" for r in results) else "done"
            wall = self._wall_ms if self._whole else self._elapsed()
            passages = {**self._passages, **{h.passage.id: h.passage for one in results for h in one.hits}}
        return replace(self._run, results=results, passages=passages, wall_ms=wall, status=status)

    def amend(self, result: RouteResult) -> None:
        """Replace the result of the same route, which was extended after the run."""
        with self._lock:
            self._results[result.route] = result

    def pending(self) -> list[Progress]:
        """Return the unfinished routes, with the spans so far of the running ones."""
        with self._lock:
            waiting = [route.name for route in self._plan.routes if route.name not in self._results]
            traces = dict(self._traces)
        return [
            (name, "running" if name in traces else "waiting", traces[name].spans() if name in traces else ())
            for name in waiting
        ]

    def _do(self) -> None:
        try:
            self._open()
            cheap, dear = self._order()
            for route in cheap:
                self._finish(route)
            if self._one_by_one:
                for route in dear:
                    self._finish(route)
            else:
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(self._finish, dear))
        finally:
            self._wall_ms = self._elapsed()
            self._whole = True
            self._save()  # before anybody who waits may end the process
            self._keep()
            self._memos.clear()  # they hold all that any step gave
            self._traces.clear()

    def _open(self) -> None:
        """Wait for what is opened once for all runs."""
        opening = self._plan.opening
        while not opening.done() and not self._cancel.is_set():
            wait([opening], LOOK_S)
        if not opening.done() or opening.exception() is not None:
            return  # it was stopped and no route begins, or each tells why it has no corpus
        self._opened(opening.result())
        if self._plan.web:
            try:
                self._web = self._engine.web()
            except RouteScopeError as error:
                self.warnings.append(f"no web search: {error}")

    def _opened(self, corpus: Corpus) -> None:
        settings = {**self._run.settings, "embedder": corpus.info.embedder}
        self._run = replace(self._run, corpus=corpus.name, fingerprint=corpus.fingerprint, settings=settings)
        self._corpus = corpus

    def _order(self) -> tuple[list[Route], list[Route]]:
        """Routes that use no model first, each part cheapest first by its history on this corpus. A pipeline
        that is not ours may take any time.
        """
        several = len(self._plan.routes) > 1
        history = self._engine.route_history(self._run.corpus) if several else {}
        # One that never ran here comes after those whose cost is known.
        ordered = sorted(self._plan.routes, key=lambda route: history.get(route.name, math.inf))
        asking = {r.name for r in ordered if r.external or r.asks(self._plan.parameters[r.name])}
        return [r for r in ordered if r.name not in asking], [r for r in ordered if r.name in asking]

    def _finish(self, route: Route) -> None:
        """Run a route in a thread of its own until it ends or is given up, and save its result."""
        start, trace = self._elapsed(), Trace(route.name)
        with self._lock:
            self._traces[route.name] = trace
        asker = Asker(self.id, trace, self._cancel, self.person)
        if self._cancel.is_set():
            result = self._ended(route, trace, "cancelled", "stopped by the user before it began")
        else:
            result = self._followed(route, trace, asker)
        wall = self._elapsed() - start
        with self._lock:
            self._passages.update(trace.passages)
            self._results[route.name] = replace(result, start_ms=start, wall_ms=wall)
            self.finished = len(self._results)
        with people.acting(self.person):  # a pool's thread acts for nobody
            self._save()

    def _followed(self, route: Route, trace: Trace, asker: Asker) -> RouteResult:
        """Run a route in a thread, and wait until it has ended or is to be given up."""
        outcome: list[RouteResult] = []
        thread = threading.Thread(
            target=lambda: outcome.append(self._run_route(route, trace, asker)),
            name=f"route-{route.name}",
            daemon=True,
        )
        thread.start()
        began, limit = time.perf_counter(), self._engine.settings.route_timeout_s + GRACE_S
        given_up: tuple[Status, str] = "timeout", f"did not stop within {limit:g} s and was abandoned"
        stopped: float | None = None
        while thread.is_alive():
            now = time.perf_counter()
            if now - began - asker.waited() > limit:
                break
            if self._cancel.is_set():
                stopped = stopped or now
                if now - stopped > GRACE_S:
                    why = "stopped by the user and abandoned, because it did not end in time"
                    given_up = "cancelled", why
                    break
            thread.join(LOOK_S)
        if outcome:
            return outcome[0]
        spans = trace.abandon("not finished when the route was abandoned")
        return self._ended(route, trace, *given_up, spans)

    def _run_route(self, route: Route, trace: Trace, asker: Asker) -> RouteResult:
        """Run a route on behalf of who asked; any failure becomes its result."""
        with people.acting(self.person), asker.asking():
            do: Steps | None = None
            try:
                do = self._steps(route, trace, asker)
                trace.begin()
                answer = route.run(self._request.query, do, self._plan.parameters[route.name])
                return with_answer(self._ended(route, trace, "ok", None), trace, answer)
            except Exception as error:  # noqa: BLE001 - any failure is shown, and the other routes go on
                why, found = describe(error), do.context.found if do is not None else None
                status: Status = next((one for kinds, one in ENDINGS if isinstance(error, kinds)), "failed")
                if found is None:
                    return self._ended(route, trace, status, why)
                # its ranking stood: only the answer failed
                stopped = status == "cancelled"
                ended = self._ended(route, trace, status if stopped else "ok", why if stopped else None)
                return with_answer(ended, trace, replace(found, error=why))

    def _steps(self, route: Route, trace: Trace, asker: Asker) -> Steps:
        """Open what a route needs, outside its own time, and return its steps."""
        plan, request, parameters = self._plan, self._request, self._plan.parameters[route.name]
        shares = request.timing == "shared" and not request.forced
        corpus = self._corpus or plan.opening.result()  # raises why it cannot be opened
        with asker.waiting():
            corpus = self._engine.by_embedder(corpus, parameters[EMBEDDER]) if route.embeds else corpus
            for need in route.needed(parameters):
                if need.enrichment:  # opening it, and loading its model, is no route's own time
                    self._engine.enrichment(corpus, need)
        with self._lock:
            memo = self._memos.setdefault(corpus.fingerprint, Memo()) if shares else Memo()
        return self._engine.steps(
            corpus,
            self._cancel,
            asker=asker,
            trace=trace,
            memo=memo,
            web=self._web,
            request=request,
            answering=request.style if route.name in plan.answered else None,
            memory=plan.memory,
            model=parameters.get(PARAMETER, ""),
        )

    def _ended(
        self,
        route: Route,
        trace: Trace,
        status: Status,
        error: str | None,
        spans: tuple[Span, ...] | None = None,
    ) -> RouteResult:
        return RouteResult(
            route.name,
            route.title,
            status,
            trace.now(),
            spans=trace.spans() if spans is None else spans,
            parameters=self._plan.parameters[route.name],
            error=error,
        )

    def _save(self) -> None:
        if self._engine.store is not None and self._request.stored:
            self._engine.store.save(self.snapshot())
            self.warnings += [w for w in self._engine.store.warnings if w not in self.warnings]

    def _keep(self) -> None:
        """Remember the question in the session, if there is one and the run was not stopped."""
        store = self._engine.store
        if not self._request.session or store is None or (run := self.snapshot()).status != "done":
            return
        try:
            keep(store, self._request.session, run)
        except RouteScopeError as error:
            self.warnings.append(f"the question was not added to the session: {describe(error)}")

    def _elapsed(self) -> float:
        return (time.perf_counter() - self._began) * 1000


def _models(settings: Settings, plan: RunPlan) -> dict[str, Any]:
    """By name of the table ("" for the default): the model, its endpoint and the prices of the day."""
    names = {plan.parameters[route.name].get(PARAMETER, "") for route in plan.routes}
    found = {}
    for name in sorted({"", *names}):
        one = settings.with_model(name)
        found[name] = {
            "model": one.llm,
            "endpoint": clean_url(one.llm_base_url) if one.llm_base_url else "embedded",
            "prices": [one.llm_price_prompt, one.llm_price_completion],
        }
    return found


def with_answer(result: RouteResult, trace: Trace, answer: Answer) -> RouteResult:
    """Add the route's outcome and its origin to `result`."""
    hits = answer.hits
    origin = Link("hits", None, len(hits)) if hits else None
    if isinstance(hits, TracedTuple):
        origin = Link("hits", hits.origin.span, len(hits), hits.origin.start)
    return replace(
        result,
        hits=tuple(hits),
        answer=answer.text,
        citations=answer.citations,
        abstained=answer.abstained,
        origin=origin,
        basis=answer.basis,
        answer_error=answer.error,
        answer_span=trace.made(answer.source),
    )
