"""Runs routes on a question: shared work, honest time, limits. The only place that catches route errors."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from core import settings as settings_module
from core.answering import Answering
from core.errors import BadInput, Cancelled, ModelTimedOut, Stopped, Unavailable
from core.reading import question
from core.route import Need, Route, pick
from core.settings import Settings
from core.steps import Context, Memo, Steps
from core.trace import Trace, describe
from core.types import Passage, Query, RouteResult, Run, Span, Status, Turn

if TYPE_CHECKING:
    from core.backends.base import LLM, Embedder, WebSearch
    from core.corpus.index import Corpus
    from core.store import Store

MAX_QUESTION = 10_000  # characters
MAX_HISTORY = 50  # turns
GRACE_S = 2.0  # a route is abandoned this long after its deadline: its own checks come first
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

Answers = Literal["none", "selected", "all"]
Progress = tuple[str, Literal["waiting", "running"], tuple[Span, ...]]


@dataclass(frozen=True, slots=True)
class Request:
    """What to run. `knobs` by route; `answered` names the routes that write an answer where `answers` is
    selected.
    """

    query: Query
    corpus: str
    routes: tuple[str, ...] = ("all",)
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: Answers = "none"
    answered: tuple[str, ...] = ()
    timing: Literal["shared", "isolated"] = "shared"


@dataclass(frozen=True, slots=True)
class _Plan:
    """A checked request."""

    query: Query
    routes: tuple[Route, ...]  # as asked for
    knobs: Mapping[str, Mapping[str, Any]]
    answered: frozenset[str]
    corpus: Corpus
    web: WebSearch | None
    warnings: tuple[str, ...]


class Engine:
    """The models and corpora of one process, and the jobs that use them. Safe to call from any thread."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self.settings = settings
        self.store = store
        self._jobs: dict[str, Job] = {}
        self._answering: dict[str, Answering] = {}  # by run
        self._corpora: dict[str, Corpus] = {}
        self._lock = threading.RLock()
        self._llm: LLM | None = None
        self._embedders: dict[str, Embedder] = {}

    def start(self, request: Request) -> Job:
        """Begin a run in the background; raises BadInput or Unavailable at once if it cannot be begun."""
        plan = self._check(request)
        job = Job(self, request, plan)
        with self._lock:
            self._jobs = {id: old for id, old in self._jobs.items() if not old.done or old.age() < 600}
            self._jobs[job.id] = job
        job.begin()
        return job

    def ask(self, request: Request) -> Run:
        """Run and wait."""
        return self.start(request).wait()

    def job(self, run_id: str) -> Job | None:
        """A job of this process by its run's id, if it is still remembered."""
        return self._jobs.get(run_id)

    def llm(self) -> LLM:
        """The configured model's client; made on first use, without starting anything."""
        with self._lock:
            if self._llm is None:
                from core.backends.llm import load_llm

                self._llm = load_llm(self.settings)
            return self._llm

    def embedder(self, name: str) -> Embedder:
        """The embedder a corpus was built with."""
        with self._lock:
            if name not in self._embedders:
                from core.backends.embedder import load_embedder

                self._embedders[name] = load_embedder(name, settings=self.settings)
            return self._embedders[name]

    def corpus(self, name: str) -> Corpus:
        """An opened corpus; opened again when its index was rebuilt meanwhile."""
        from core.corpus.index import current_fingerprint, open_corpus

        with self._lock:
            known = self._corpora.get(name)
            if known is None or known.fingerprint != current_fingerprint(name, settings=self.settings):
                known = open_corpus(name, settings=self.settings)
                # the first search of a process loads libraries and files: no route is to pay for that
                known.search_dense(self.embedder(known.info.embedder).embed_query("warm up"), 1)
                known.search_sparse("warm up", 1)
                self._corpora[name] = known
            return known

    def run(self, run_id: str) -> Run:
        """A run by its id: of a job remembered here, else from the store. BadInput or Unavailable if none."""
        job = self.job(run_id)
        if job is not None:
            return job.snapshot()
        if self.store is None:
            raise Unavailable("runs are not stored here, so only a run under way can be shown")
        return self.store.load(run_id)

    def start_answer(self, run_id: str, route_name: str) -> Answering:
        """Begin to write the answer of one route of a finished run; asked again meanwhile, the same one.

        Raises BadInput at once if there is nothing to write, or another route's is being written.
        """
        with self._lock:
            known = self._answering.get(run_id)
            if known is not None and not known.done:
                if known.route == route_name:
                    return known
                raise BadInput(f"the answer of route {known.route!r} is being written; wait for it")
            run = self.run(run_id)
            _answerable(run, route_name)
            begun = self._answering[run_id] = Answering(run_id, route_name)
            begun.begin(lambda: self.add_answer(run, route_name))
            return begun

    def answering(self, run_id: str) -> Answering | None:
        """The latest answer that `start_answer` began for a run: under way, or how it ended."""
        return self._answering.get(run_id)

    def add_answer(self, run: Run, route_name: str) -> Run:
        """Write the answer of one route of a finished run, as spans appended to its own; saves and returns
        the run.
        """
        result = _answerable(run, route_name)
        trace = Trace(route_name, max((s.id for s in result.spans), default=0) + 1, result.ms)
        context = self._context(self.corpus(run.corpus), None, trace, Memo(), threading.Event(), answer=True)
        answer = Steps(context).answer(question(run, result), result.hits)
        spans = (*result.spans, *trace.spans())
        added = replace(result, answer=answer.text, citations=answer.citations, spans=spans, ms=trace.now())
        changed = replace(run, results=tuple(added if r is result else r for r in run.results))
        job = self.job(run.id)
        if job is not None:
            job.amend(added)
        if self.store is not None:
            self.store.save(changed)
        return changed

    def _check(self, request: Request) -> _Plan:
        query, warnings = clean(request.query)
        routes = tuple(pick(list(request.routes)))
        names = {route.name for route in routes}
        for name in request.knobs:
            if name not in names:
                raise BadInput(f"knobs for {name!r}, which is not among the routes: {', '.join(names)}")
        knobs = {route.name: route.settle(request.knobs.get(route.name, {})) for route in routes}
        if request.answers not in ("none", "selected", "all"):
            raise BadInput(f"answers={request.answers!r}; give none, selected or all")
        chosen = {"none": frozenset[str](), "selected": frozenset(request.answered), "all": frozenset(names)}
        web = None
        if any(Need.WEB in route.needs for route in routes):
            try:
                snapshot = self.corpus("web")
            except Unavailable as error:
                warnings.append(f"no web search: {error}")
            else:
                from core.backends.web import Snapshot

                web = Snapshot(snapshot, self.embedder(snapshot.info.embedder))
        return _Plan(
            query, routes, knobs, chosen[request.answers], self.corpus(request.corpus), web, tuple(warnings)
        )

    def _context(
        self,
        corpus: Corpus,
        web: WebSearch | None,
        trace: Trace,
        memo: Memo,
        cancel: threading.Event,
        *,
        answer: bool,
    ) -> Context:
        now = self.settings
        return Context(
            corpus=corpus, embedder=self.embedder(corpus.info.embedder), llm=self.llm(), web=web, trace=trace,
            memo=memo, cancel=cancel, deadline=time.perf_counter() + now.route_timeout_s,
            llm_timeout_s=now.llm_timeout_s, max_calls=now.route_max_calls, max_tokens=now.route_max_tokens,
            write_answer=answer,
        )  # fmt: skip


class Job:
    """A run under way in threads of its own: it needs no page to stay open."""

    def __init__(self, engine: Engine, request: Request, plan: _Plan) -> None:
        self.id = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"  # sorts by time
        self.warnings: list[str] = list(plan.warnings)
        self._engine, self._request, self._plan = engine, request, plan
        self._cancel, self._finished = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._memo = Memo()
        self._results: dict[str, RouteResult] = {}
        self._traces: dict[str, Trace] = {}
        self._began = time.perf_counter()
        self._wall_ms = 0.0
        self._over = False
        llm = engine.llm()
        self._one_by_one = llm.local
        self._run = Run(
            id=self.id,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            query=plan.query,
            corpus=plan.corpus.name,
            fingerprint=plan.corpus.fingerprint,
            settings={
                "routes": [route.name for route in plan.routes],
                "answers": request.answers,
                "answered": sorted(plan.answered),
                "timing": request.timing,
                "routes ran": "one after another" if self._one_by_one else "side by side",
                "llm": llm.model,
                "llm endpoint": llm.endpoint,
                "llm mode": engine.settings.llm_mode,
                "embedder": plan.corpus.info.embedder,
            },
            status="running",
        )

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._finished.is_set()

    def age(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self._began

    def begin(self) -> None:
        """Start the thread that runs the routes."""
        threading.Thread(target=self._work, name=f"run-{self.id}", daemon=True).start()

    def cancel(self) -> None:
        """Stop what is pending; finished routes stay."""
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> Run:
        """The finished run; TimeoutError if it has not ended after `timeout` seconds."""
        if not self._finished.wait(timeout):
            raise TimeoutError(f"run {self.id} has not ended after {timeout} s")
        return self.snapshot()

    def snapshot(self) -> Run:
        """The run so far: finished routes in the order asked for."""
        with self._lock:
            results = tuple(self._results[r.name] for r in self._plan.routes if r.name in self._results)
            status: Literal["running", "done", "cancelled"] = "running"
            if self._over:
                status = "cancelled" if any(r.status == "cancelled" for r in results) else "done"
            wall = self._wall_ms if self._over else self._elapsed()
        return replace(
            self._run, results=results, passages=self._passages(results), wall_ms=wall, status=status
        )

    def amend(self, result: RouteResult) -> None:
        """Put a result in place of the same route's: something was added after the run."""
        with self._lock:
            self._results[result.route] = result

    def pending(self) -> list[Progress]:
        """The routes that have not ended, with the spans so far of those that run."""
        with self._lock:
            waiting = [route.name for route in self._plan.routes if route.name not in self._results]
            traces = dict(self._traces)
        return [
            (name, "running" if name in traces else "waiting", traces[name].spans() if name in traces else ())
            for name in waiting
        ]

    def _work(self) -> None:
        try:
            cheap, dear = self._order()
            for route in cheap:
                self._one(route)
            if self._one_by_one:
                for route in dear:
                    self._one(route)
            else:
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(self._one, dear))
        finally:
            self._wall_ms = self._elapsed()
            self._over = True
            self._save()  # before anybody who waits may end the process
            self._finished.set()

    def _order(self) -> tuple[list[Route], list[Route]]:
        """Routes without a model first, each part cheapest first by its history on this corpus."""
        store = self._engine.store
        history = store.route_history(self._plan.corpus.name) if store is not None else {}
        ordered = sorted(self._plan.routes, key=lambda route: history.get(route.name, 0.0))
        return [r for r in ordered if Need.LLM not in r.needs], [r for r in ordered if Need.LLM in r.needs]

    def _one(self, route: Route) -> None:
        start = self._elapsed()
        trace = Trace(route.name)
        with self._lock:
            self._traces[route.name] = trace
        outcome: list[RouteResult] = []
        thread = threading.Thread(
            target=lambda: outcome.append(self._route(route, trace)), name=f"route-{route.name}", daemon=True
        )
        if self._cancel.is_set():
            outcome.append(self._ended(route, trace, "cancelled", "stopped by the user before it began"))
        else:
            thread.start()
            limit = self._engine.settings.route_timeout_s + GRACE_S
            thread.join(limit)
        if not outcome:
            spans = trace.abandon("had not ended when the route was given up")
            reason = f"did not stop within {limit:g} s and was given up"
            outcome.append(replace(self._ended(route, trace, "timeout", reason), spans=spans))
        wall = self._elapsed() - start
        with self._lock:
            self._results[route.name] = replace(outcome[0], start_ms=start, wall_ms=wall)
        self._save()

    def _route(self, route: Route, trace: Trace) -> RouteResult:
        plan = self._plan
        memo = self._memo if self._request.timing == "shared" else Memo()
        try:
            context = self._engine._context(
                plan.corpus, plan.web, trace, memo, self._cancel, answer=route.name in plan.answered
            )
            trace.begin()
            answer = route.run(plan.query, Steps(context), plan.knobs[route.name])
        except Unavailable as error:
            return self._ended(route, trace, "unavailable", describe(error))
        except Cancelled as error:
            return self._ended(route, trace, "cancelled", describe(error))
        except (Stopped, ModelTimedOut) as error:
            return self._ended(route, trace, "timeout", describe(error))
        except Exception as error:  # noqa: BLE001 - a route may fail in any way; it is shown, and the others go on
            return self._ended(route, trace, "failed", describe(error))
        done = self._ended(route, trace, "ok", None)
        return replace(done, hits=answer.hits, answer=answer.text, citations=answer.citations)

    def _ended(self, route: Route, trace: Trace, status: Status, error: str | None) -> RouteResult:
        knobs = self._plan.knobs[route.name]
        return RouteResult(
            route.name, route.title, status, trace.now(), spans=trace.spans(), knobs=knobs, error=error
        )

    def _passages(self, results: tuple[RouteResult, ...]) -> dict[str, Passage]:
        known = {hit.passage.id: hit.passage for result in results for hit in result.hits}
        named = {id for result in results for span in result.spans for id, _ in span.hits or ()}
        known.update(
            self._plan.corpus.by_ids(sorted(id for id in named - known.keys() if not id.startswith("web/")))
        )
        return known

    def _save(self) -> None:
        if self._engine.store is not None:
            self._engine.store.save(self.snapshot())
            self.warnings += [w for w in self._engine.store.warnings if w not in self.warnings]

    def _elapsed(self) -> float:
        return (time.perf_counter() - self._began) * 1000


def _answerable(run: Run, route_name: str) -> RouteResult:
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


def clean(query: Query) -> tuple[Query, list[str]]:
    """The question without control characters, and what was done to it; BadInput if it cannot be asked."""
    warnings: list[str] = []

    def scrub(text: str) -> str:
        cleaned, removed = _CONTROL.subn(" ", text.replace("\r\n", "\n"))
        if removed:
            warnings.append(f"{removed} control characters were replaced by spaces")
        return cleaned.strip()

    text = scrub(query.text)
    if not text:
        raise BadInput("the question is empty; write at least one word")
    if len(text) > MAX_QUESTION:
        raise BadInput(f"the question has {len(text):,} characters; at most {MAX_QUESTION:,} are allowed")
    if len(query.history) > MAX_HISTORY:
        raise BadInput(f"the conversation has {len(query.history)} turns; at most {MAX_HISTORY} are allowed")
    history = tuple(Turn(turn.role, scrub(turn.text)) for turn in query.history)
    for number, turn in enumerate(history, 1):
        if len(turn.text) > MAX_QUESTION:
            raise BadInput(
                f"turn {number} has {len(turn.text):,} characters; at most {MAX_QUESTION:,} are allowed"
            )
    return Query(text, tuple(turn for turn in history if turn.text)), warnings


@cache
def shared_engine() -> Engine:
    """The one engine of this process, with the store of its home folder."""
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1"
    )  # one query is searched twice as fast by one thread as by two
    from core.store import Store

    settings = settings_module.current()
    return Engine(settings, Store(settings.home / "routescope.sqlite"))
