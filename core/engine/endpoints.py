"""The models and services that the settings name: what a test found of each, and the routes it affects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

from core.backends.base import LLMRequest, Message
from core.backends.hosted_embedder import address
from core.backends.llm import load_llm
from core.backends.llm.probe import probe
from core.backends.rerankers import EMBEDDED, LLM
from core.backends.web import NONE
from core.corpus.passage_matching import Matched
from core.domain import people
from core.domain.errors import RouteScopeError, Unavailable, describe
from core.domain.external import PipelineReply
from core.domain.models import AT
from core.domain.needs import Need
from core.domain.once import Recent
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine.availability import no_web
from core.engine.engine import Engine
from core.engine.request import clean
from core.routes.registry import ours, pipelines, routes

Report = Callable[[str, int, int], None]
Kind = Literal["chat model", "embedder", "reranker", "reflection-token model", "web search"]
WORDS = "verdicts read from words, as the endpoint gives no probabilities"
_TEXTS = [f"Parcel {n} waits at the depot until it is fetched or sent back." for n in range(32)]
_IN_WORDS = {True: "yes", False: "no", None: "not known"}


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """A model or service that the settings name, and what is known of it."""

    kind: Kind
    # of a chat model "llm" for the default, else its table's; of an embedder as the settings name it
    name: str
    model: str
    address: str
    state: Literal["ok", "failed", "not tested"] = "not tested"
    error: str | None = None  # why it cannot be called, or did not answer
    when: str = ""  # when it was tested in this process: ISO 8601, UTC
    tested: Mapping[str, Any] = field(default_factory=dict)  # what was tested: what came of it
    rejected: Mapping[str, str] = field(default_factory=dict)  # by field: the service's words
    routes: tuple[str, ...] = ()  # that use it
    affected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by what is lacking: routes

    @property
    def title(self) -> str:
        """Return its kind and name."""
        return self.kind if self.kind == self.name else f"{self.kind} {self.name}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return what was tested, in words."""
        return [(name, _in_words(value)) for name, value in self.tested.items()]

    @property
    def known(self) -> bool:
        """Return whether anything is known of whether it works."""
        return self.state != "not tested" or bool(self.tested)

    def failed(self, error: str) -> EndpointReport:
        """Return this report with an error, which affects every route that uses the endpoint."""
        affected = {f"does not answer: {error}": self.routes}
        return replace(self, state="failed", error=error, affected=affected)


def _in_words(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _IN_WORDS[value]
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


_tried: Recent[tuple[str, ...], EndpointReport] = Recent(64)  # of this process


def endpoints(settings: Settings) -> list[EndpointReport]:
    """Return all that the settings name with what is known of each. Calls nobody."""
    rerankable = tuple(one for one, route in ours().items() if "rerank" in route.function.__code__.co_names)
    chosen = settings.reranker.strip()
    where = chosen if "://" in chosen else "the language model" if chosen == LLM else "in this process"
    model = settings.reranker_model or chosen
    found = [chat(settings, name) for name in ("", *settings.models)]
    found += [_embedder(settings, name) for name in dict.fromkeys((settings.embedder, *settings.embedders))]
    found.append(EndpointReport("reranker", "reranker", model, where, routes=rerankable))
    if url := settings.self_rag_base_url:
        kind: Kind = "reflection-token model"
        found.append(EndpointReport(kind, kind, settings.self_rag_model, url, routes=using(Need.SELF_RAG)))
    search = settings.web_search
    web = EndpointReport("web search", "web search", search, search, routes=using(Need.WEB))
    lack = None if search == NONE else no_web(settings)
    return [_latest(one) for one in (*found, web.failed(lack) if lack else web)]


def chat(settings: Settings, name: str = "") -> EndpointReport:
    """Return what is known of the chat model of a table [models.NAME], "" for the default. Calls nobody."""
    own = settings.with_model(name)
    about = EndpointReport("chat model", name or "llm", own.llm, "not available", routes=asking(name))
    try:
        llm = load_llm(own)
    except RouteScopeError as error:
        return about.failed(str(error))
    about = replace(about, model=llm.model, address=llm.endpoint)
    if why := llm.status():
        return about.failed(why)
    if llm.backend.known is None:
        return replace(about, tested={"probabilities": True, "schema": True, "context": own.llm_context})
    known = llm.backend.known.get()
    if known.failed:
        return about.failed(known.failed)
    if not known.served:
        return about
    affected = {WORDS: tuple(filter(_judges, about.routes))} if known.probabilities is False else {}
    affected |= {f"long prompts: {known.truncated}": about.routes} if known.truncated else {}
    tested = {
        "model served": known.served,
        "probabilities": known.probabilities,
        "reasoning": known.reasons,
        "reasoning tokens": known.reasoning_tokens,
        "context": known.context,
    }
    return replace(about, state="ok", tested=tested, rejected=known.said, affected=affected)


def _embedder(settings: Settings, name: str) -> EndpointReport:
    embedding = tuple(one for one, route in ours().items() if route.embeds)
    service = settings.embedders.get(name)
    about = EndpointReport("embedder", name, name, "in this process", routes=embedding)
    if service is None:
        return about
    about = replace(about, model=service.model, address="not available")
    try:
        about = replace(about, address=address(service, f"[embedders.{name}]"))
    except RouteScopeError as error:
        return about.failed(str(error))
    unset = service.key_env and not service.key()
    return about.failed(f"the environment variable {service.key_env} is not set") if unset else about


def _latest(about: EndpointReport) -> EndpointReport:
    """Add the last test in this process; what is stored of a service may be newer."""
    tried = _tried.get((about.kind, about.name, about.model, about.address))
    if tried is None or about.state == "not tested":
        return tried or about
    return replace(about, when=tried.when, tested={**tried.tested, **about.tested})


def using(need: Need) -> tuple[str, ...]:
    """Return the routes that have a need, or use what meets it."""
    return tuple(one.name for one in routes().values() if need in (*one.every_need, *one.uses))


def asking(name: str = "") -> tuple[str, ...]:
    """Return the routes that call the model of a table [models.NAME], "" for the default."""
    return tuple(f"{one}{AT}{name}" if name else one for one in using(Need.LLM))


def _judges(name: str) -> bool:
    """Return True if a route depends on a judgement of its model."""
    route = routes()[name]
    return bool(route.decides) or Need.LLM in route.needs_if.values() or "wise" in route.name


def try_endpoint(
    engine: Engine, endpoint: EndpointReport, report: Report, cancel: threading.Event, *, brief: bool = False
) -> EndpointReport:
    """Call an endpoint a few times, past any cache, and remember the result; a chat model once if `brief`.
    Raises Cancelled only.
    """
    name = endpoint.name if endpoint.name in engine.settings.models else ""
    about, when = endpoint, datetime.now(UTC).isoformat(timespec="seconds")
    try:
        if endpoint.kind == "chat model":
            limits: dict[str, Any] = {"timeout": engine.settings.llm_timeout_s, "cancel": cancel}
            facts = probe(engine.llm(name=name), **limits, report=report, brief=brief)
            about = chat(engine.settings, name)
        elif endpoint.kind == "embedder":
            facts = _embeds(engine, report, endpoint.name)
        else:
            work = {"reranker": _reranker, "web search": _web, "reflection-token model": _self_rag}
            facts = work[endpoint.kind](engine, report, cancel)
        tested = {**facts, **about.tested}
        found = replace(about, state="ok", when=when, error=None, tested=tested)
    except RouteScopeError as error:
        if cancel.is_set():
            raise
        found = replace(endpoint, when=when).failed(str(error))
    _tried[endpoint.kind, endpoint.name, endpoint.model, endpoint.address] = found
    return found


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _self_rag(engine: Engine, report: Report, cancel: threading.Event) -> dict[str, Any]:
    report("a first answer", 0, 1)
    request = LLMRequest("probe/4", (Message("user", "Is water wet?"),), 2, top_logprobs=5)
    found = engine.reflection().complete(request, timeout=engine.settings.llm_timeout_s, cancel=cancel)
    likely = any(token.top for token in found.logprobs)
    return {"first answer (2 tokens), ms": found.ms, "probabilities": likely}


def _embeds(engine: Engine, report: Report, name: str) -> dict[str, Any]:
    report("a question", 0, 2)
    times = [time.perf_counter()]
    embedder = engine.embedder(name)
    embedder.embed_query("Is water wet?")
    times.append(time.perf_counter())
    embedder.embed_query("Is ice wet?")
    times.append(time.perf_counter())
    report("32 passages", 1, 2)
    embedder.embed(_TEXTS)
    many = len(_TEXTS) * 1000 / _since(times[2])
    first, second = (1000 * (end - start) for start, end in pairwise(times))
    return {
        "dimensions": embedder.dim,
        "first question, with loading, ms": first,
        "next question, ms": second,
        "short passages per second": many,
    }


def _reranker(engine: Engine, report: Report, cancel: threading.Event) -> dict[str, Any]:
    rerankers = engine.rerankers()
    began = time.perf_counter()
    report("loading", 0, 2)
    rerankers.load(rerankers.configured)
    facts: dict[str, Any] = {"loading, unless loaded before, ms": _since(began)}
    if rerankers.configured in (EMBEDDED, LLM):
        return facts
    report("two passages", 1, 2)
    passages = [Passage(f"probe/{n}", "probe", "", text) for n, text in enumerate(_TEXTS[:2])]
    began = time.perf_counter()
    scores = rerankers.paired().rerank("When is it sent back?", passages, cancel=cancel)
    shown = ", ".join(f"{score:.3f}" for score in scores)
    return {**facts, "two passages, ms": _since(began), "scores": shown}


def _web(engine: Engine, report: Report, cancel: threading.Event) -> dict[str, Any]:
    report("one search", 0, 1)
    search = engine.web()
    if search is None:
        return {"kind": "none, as configured"}
    began = time.perf_counter()
    found = search.search("weather", 5, timeout=min(10.0, engine.settings.llm_timeout_s), cancel=cancel)
    return {"kind": search.label, "results": len(found), "search, ms": _since(began)}


@dataclass(frozen=True, slots=True)
class Trial:
    """One call: the reply as it was read and its hits matched, or the error. `ms` as measured here."""

    when: str  # ISO 8601, UTC
    question: str
    corpus: str
    reply: PipelineReply | None = None
    matched: Matched | None = None
    ms: float | None = None
    inside_ms: float | None = None
    error: str = ""


_trials: dict[str, Trial] = {}


def last_trial(name: str) -> Trial | None:
    """Return the last trial of a pipeline in this process."""
    return _trials.get(name)


def try_pipeline(engine: Engine, name: str, question: str, corpus: str, cancel: threading.Event) -> Trial:
    """Call a pipeline, ignoring stored replies, and remember the outcome. Raises BadInput for an invalid
    question, and Cancelled on a stop.
    """
    people.require("ask a model")  # it may call one, and costs whoever runs it
    query, _ = clean(Query(question))
    when = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        pipeline = pipelines().get(name)
        if pipeline is None:
            raise Unavailable(f"pipeline {name} is not set up any more")
        call = engine.external(name, "record")
        given = call.ask(query, pipeline.k, pipeline.timeout_s, cancel)
        matched = engine.corpus(corpus).matcher.match(given.reply.hits)
        made = Trial(when, query.text, corpus, given.reply, matched, given.ms, given.inside_ms)
    except RouteScopeError as error:
        if cancel.is_set():
            raise
        made = Trial(when, query.text, corpus, error=describe(error))
    _trials[name] = made
    return made
