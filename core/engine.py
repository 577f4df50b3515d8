"""The engine of one process: its models, its corpora, and the runs that use them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from core import needs
from core import settings as settings_module
from core.answering import Answering, answerable, write_later
from core.backends import evaluators
from core.backends.fid import FusionReader, FusionReaders
from core.backends.kept import KeptVectors
from core.backends.rerankers import Rerankers
from core.conversation import gather, keep_answer
from core.corpus.tables import Tables
from core.enrich.opened import Opened
from core.errors import BadInput, RouteScopeError, Unavailable
from core.job import Job
from core.request import MAX_QUESTION, Plan, Request, clean
from core.route import Need, Route, pick
from core.settings import Settings
from core.steps import Context, Memo
from core.trace import Trace
from core.types import AnswerStyle, Query, Remembered, Run

if TYPE_CHECKING:
    from core.backends.base import LLM, Embedder, WebSearch
    from core.backends.sql import Database
    from core.corpus.index import Corpus
    from core.store import Store

log = logging.getLogger("routescope.engine")

__all__ = ["MAX_QUESTION", "Engine", "Job", "Request", "clean", "shared_engine"]


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
        self._reflection: LLM | None = None
        self._embedders: dict[str, Embedder] = {}
        self._turn_vectors = KeptVectors()
        self._rerankers = Rerankers(settings)
        self._live_web: WebSearch | None = None
        self._fid = FusionReaders(settings)
        self._enrichments = Opened(settings)
        self._tables = Tables(settings)

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

    def reflection(self) -> LLM:
        """The reflection-token model's client; raises Unavailable with the way to get one."""
        with self._lock:
            if self._reflection is None:
                from core.backends.llm import load_reflection

                self._reflection = load_reflection(self.settings)
            return self._reflection

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

    def web(self) -> WebSearch | None:
        """The web search of the settings, None where none is wanted; raises Unavailable or BadInput."""
        from core.backends.web import Snapshot, load_web

        def snapshot() -> WebSearch:
            pages = self.corpus("web")
            return Snapshot(pages, self.embedder(pages.info.embedder))

        with self._lock:
            if self._live_web is None:
                found = load_web(self.settings, snapshot)
                if isinstance(found, Snapshot):  # its pages may be indexed again meanwhile
                    return found
                self._live_web = found
            return self._live_web

    def rerankers(self) -> Rerankers:
        """The rerankers of this process; none is loaded before it is used."""
        return self._rerankers

    def fid(self) -> FusionReader:
        """The Fusion-in-Decoder model of the settings, loaded when first asked for; raises Unavailable."""
        return self._fid.get()

    def enrichment(self, corpus: Corpus, need: Need) -> Any:
        """What was made for `corpus` to meet `need`; raises Unavailable with the way to get it."""
        return self._enrichments.get(corpus, need.enrichment or "")

    def tables(self, corpus: str, need: Need) -> Database:
        """The database (Need.TABLES) or the CSV files (Need.CSV) of a corpus; raises Unavailable."""
        return self._tables.get(corpus, need)

    def run(self, run_id: str) -> Run:
        """A run by its id: of a job remembered here, else from the store. BadInput or Unavailable if none."""
        job = self.job(run_id)
        if job is not None:
            return job.snapshot()
        if self.store is None:
            raise Unavailable("runs are not stored here, so only a run under way can be shown")
        return self.store.load(run_id)

    def start_answer(self, run_id: str, route_name: str, style: AnswerStyle | None = None) -> Answering:
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
            answerable(run, route_name)
            begun = self._answering[run_id] = Answering(run_id, route_name)
            begun.begin(lambda: self.add_answer(run, route_name, style, begun.follow))
            return begun

    def answering(self, run_id: str) -> Answering | None:
        """The latest answer that `start_answer` began for a run: under way, or how it ended."""
        return self._answering.get(run_id)

    def add_answer(
        self,
        run: Run,
        route_name: str,
        style: AnswerStyle | None = None,
        started: Callable[[Trace], None] = lambda _trace: None,
    ) -> Run:
        """Write the answer of one route of a finished run; saves and returns the run. `started` is given the
        trace in which the text can be read while it is written.
        """
        changed = write_later(self, run, route_name, style or AnswerStyle(), started)
        job = self.job(run.id)
        if job is not None:
            job.amend(next(result for result in changed.results if result.route == route_name))
        if self.store is not None:
            self.store.save(changed)
            try:
                keep_answer(self.store, changed)
            except RouteScopeError as error:  # the answer itself is written and saved
                log.warning("the answer of run %s is not remembered: %s", run.id, error)
                if job is not None:
                    job.warnings.append(f"the answer is not remembered: {error}")
        return changed

    def _check(self, request: Request) -> Plan:
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
        memory = self._remembered(request.session, query, warnings)
        web = None
        if any(Need.WEB in (*route.needs, *route.uses) for route in routes):
            try:
                web = self.web()
            except Unavailable as error:
                warnings.append(f"no web search: {error}")
        return Plan(
            query, routes, knobs, chosen[request.answers], self.corpus(request.corpus), web, tuple(warnings),
            request.session, memory,
        )  # fmt: skip

    def _remembered(self, session: str, query: Query, warnings: list[str]) -> tuple[Remembered, ...]:
        """All that was said before the question; what cannot be remembered is a warning."""
        stored: tuple[Remembered, ...] = ()
        if session:
            from core.store.memory import check_session

            check_session(session)
            try:
                if self.store is None:
                    raise Unavailable("runs are not stored here")
                stored = self.store.recall(session)
            except Unavailable as error:
                warnings.append(f"nothing is remembered of session {session}: {error}")
        return gather(stored, query.history)

    def _why_not(self, corpus: str) -> Callable[[Route], str | None]:
        """Why a route cannot run on a corpus with its default knobs, or None; looked up when first asked."""
        gaps = cache(lambda: needs.missing(self, corpus))
        return lambda route: next((gaps()[n] for n in route.needed(route.settle({})) if n in gaps()), None)

    def context(
        self,
        corpus: Corpus,
        web: WebSearch | None,
        trace: Trace,
        memo: Memo,
        cancel: threading.Event,
        *,
        answering: AnswerStyle | None = None,
        memory: tuple[Remembered, ...] = (),
    ) -> Context:
        """What one route's steps may touch; its deadline begins now."""
        now = self.settings
        return Context(
            corpus=corpus, embedder=self.embedder(corpus.info.embedder), llm=self.llm(), web=web, trace=trace,
            memo=memo, cancel=cancel, deadline=time.perf_counter() + now.route_timeout_s,
            llm_timeout_s=now.llm_timeout_s, max_calls=now.route_max_calls, max_tokens=now.route_max_tokens,
            why_not=self._why_not(corpus.name), prepared=lambda need: self.tables(corpus.name, need)
            if need in (Need.TABLES, Need.CSV) else self.enrichment(corpus, need), rerankers=self.rerankers(),
            answering=answering, evidence=answering.evidence if answering else now.answer_evidence,
            reflection=self.reflection, memory=memory, turn_vectors=self._turn_vectors,
            llm_context=now.llm_context, fid=self.fid,
            evaluator=lambda name: evaluators.read(name, now.home, corpus.name),
        )  # fmt: skip


@cache
def shared_engine() -> Engine:
    """The one engine of this process, with the store of its home folder."""
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1"
    )  # one query is searched twice as fast by one thread as by two
    from core.store import Store

    settings = settings_module.current()
    return Engine(settings, Store(settings.home / "routescope.sqlite"))
