"""The models and services that the settings name, tested, with the routes they affect."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from core.backends.embedder import load_embedder
from core.backends.llm import load_llm
from core.backends.llm.model import EmbeddedLLM
from core.backends.llm.probe import last_failure, probe
from core.backends.llm.profile import Profile
from core.backends.rerankers import EMBEDDED, LLM, Rerankers
from core.corpus import catalogue
from core.corpus.passage_matching import Matched
from core.domain import people
from core.domain.errors import ModelFailed, RouteScopeError, Unavailable, describe
from core.domain.external import PipelineReply
from core.domain.format import milliseconds
from core.domain.models import AT
from core.domain.needs import Need
from core.domain.once import Recent
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine.engine import Engine
from core.engine.request import clean
from core.routes.registry import ours, pipelines, routes

Report = Callable[[str, int, int], None]
SERVICE = "embedder "  # what the name of a further embedding service begins with
_TEXTS = [f"Parcel {n} waits at the depot until it is fetched or sent back." for n in range(32)]


@dataclass(frozen=True, slots=True)
class ProbedEndpoint:
    """One thing that is called: what for, which model, where; `why_not` if it cannot be called at all."""

    name: str
    role: str
    model: str
    address: str
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of testing an endpoint."""

    when: str  # ISO 8601, UTC
    facts: tuple[tuple[str, str], ...] = ()  # measured (name, value) pairs
    error: str | None = None  # why it does not work


_tried: Recent[ProbedEndpoint, ProbeResult] = Recent(64)  # of this process


def endpoints(engine: Engine) -> list[ProbedEndpoint]:
    """All that the settings name, in the order of a route's steps. Calls nobody."""
    now = engine.settings
    try:
        model = engine.llm()
        about: tuple[str, str, str | None] = model.model, model.endpoint, model.status()
    except RouteScopeError as error:
        about = now.llm, "not available", str(error)
    service, reranker = "://" in now.reranker, now.reranker_model or now.reranker
    where = now.reranker if service else "the language model" if now.reranker == LLM else "in this process"
    found = [
        embedding_endpoint(now, now.embedder, "embedder", "vectors of questions and passages"),
        ProbedEndpoint("llm", "language model", *about),
        ProbedEndpoint("reranker", "reranker", reranker, where),
    ]
    if url := now.self_rag_base_url:
        found.append(ProbedEndpoint("self_rag", "reflection-token model", now.self_rag_model, url))
    others = [name for name in now.embedders if name != now.embedder]
    found += [embedding_endpoint(now, one, f"{SERVICE}{one}", f"vectors by embedder={one}") for one in others]
    return [*found, ProbedEndpoint("web", "web search", now.web_search, now.web_search)]


def embedding_endpoint(now: Settings, embedder: str, name: str, role: str) -> ProbedEndpoint:
    """Describe an embedder by its name in the settings."""
    from core.backends.hosted_embedder import address

    service = now.embedders.get(embedder)
    if service is None:
        return ProbedEndpoint(name, role, embedder, "in this process")
    try:
        where, lack = address(service, f"[embedders.{embedder}]"), None
    except RouteScopeError as error:
        where, lack = "not available", str(error)
    if service.key_env and not service.key():
        lack = f"the environment variable {service.key_env} is not set"
    return ProbedEndpoint(name, role, f"{embedder}: {service.model}", where, lack)


def outcome(endpoint: ProbedEndpoint) -> ProbeResult | None:
    """Return the result of the last test in this process."""
    return _tried.get(endpoint)


def llm_failure(engine: Engine) -> str:
    """Why the language model did not answer when it was last tested, in this process or a service in
    another; "" if it did, or was not tested.
    """
    try:
        llm = engine.llm()
    except RouteScopeError:
        return ""  # `endpoints` says why
    if (stored := last_failure(llm)) is not None:
        return stored
    tried = outcome(ProbedEndpoint("llm", "language model", llm.model, llm.endpoint, llm.status()))
    return (tried.error or "") if tried else ""


def attempt(engine: Engine, endpoint: ProbedEndpoint, report: Report, cancel: threading.Event) -> ProbeResult:
    """Call an endpoint a few times, past any cache, and store the result. Raises Cancelled only."""
    when, name = datetime.now(UTC).isoformat(timespec="seconds"), endpoint.name
    try:
        work = {"llm": _llm, "reranker": _reranker, "self_rag": _self_rag, "web": _web}
        if name in work:
            facts = work[name](engine, report, cancel)
        else:
            named = engine.settings.embedder if name == "embedder" else name.removeprefix(SERVICE)
            facts = _embeds(engine, report, named)
        tried = ProbeResult(when, facts)
    except RouteScopeError as error:
        if cancel.is_set():
            raise
        tried = ProbeResult(when, error=str(error))
    _tried[endpoint] = tried
    return tried


Facts = tuple[tuple[str, str], ...]


def _since(began: float) -> str:
    return milliseconds((time.perf_counter() - began) * 1000)


def _llm(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    began = time.perf_counter()
    found = probe(engine.llm(), timeout=engine.settings.llm_timeout_s, cancel=cancel, report=report)
    if found.error:
        raise ModelFailed(found.error)
    speeds = [
        "not reported" if one is None else f"{one:,.0f} tokens a second"
        for one in (found.read_per_s, found.write_per_s)
    ]
    return (
        ("first answer (2 tokens)", milliseconds(found.ms)),
        ("token probabilities", _yes(found.logprobs)),
        ("JSON schema output", _yes(found.schema)),
        ("streaming", f"yes, {found.pieces} pieces" if found.streams else "no"),
        *zip(("reads", "writes"), speeds, strict=True),
        ("total time", _since(began)),
    )


def _self_rag(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    from core.backends.base import LLMRequest, Message

    report("a first answer", 0, 1)
    request = LLMRequest("probe/4", (Message("user", "Is water wet?"),), 2, top_logprobs=5)
    found = engine.reflection().complete(request, timeout=engine.settings.llm_timeout_s, cancel=cancel)
    likely = _yes(any(token.top for token in found.logprobs))
    return ("first answer (2 tokens)", milliseconds(found.ms)), ("token probabilities", likely)


def _embeds(engine: Engine, report: Report, name: str) -> Facts:
    report("a question", 0, 2)
    began = time.perf_counter()
    embedder = engine.embedder(name)
    embedder.embed_query("Is water wet?")
    loaded = _since(began)
    began = time.perf_counter()
    embedder.embed_query("Is ice wet?")
    one = _since(began)
    report("32 passages", 1, 2)
    began = time.perf_counter()
    embedder.embed(_TEXTS)
    many = len(_TEXTS) / (time.perf_counter() - began)
    return (
        ("dimensions", str(embedder.dim)),
        ("first question, including loading", loaded),
        ("next question", one),
        ("passages", f"{many:,.0f} a second (short ones)"),
    )


def _reranker(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    rerankers = engine.rerankers()
    began = time.perf_counter()
    report("loading", 0, 2)
    rerankers.load(rerankers.configured)
    loaded = ("loading, if not already loaded", _since(began))
    if rerankers.configured == EMBEDDED:
        return loaded, ("uses", "the corpus index's data on each passage")
    if rerankers.configured == LLM:
        return (loaded,)
    report("two passages", 1, 2)
    passages = [Passage(f"probe/{n}", "probe", "", text) for n, text in enumerate(_TEXTS[:2])]
    began = time.perf_counter()
    scores = rerankers.paired().rerank("When is it sent back?", passages, cancel=cancel)
    shown = ", ".join(f"{score:.3f}" for score in scores)
    return loaded, ("two passages", _since(began)), ("scores", shown)


def _web(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    report("one search", 0, 1)
    search = engine.web()
    if search is None:
        return (("web search", "none, as configured"),)
    began = time.perf_counter()
    found = search.search("weather", 5, timeout=min(10.0, engine.settings.llm_timeout_s), cancel=cancel)
    return ("kind", search.label), ("results", f"{len(found)} in {_since(began)}")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


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


WORDS = "read from words, as the endpoint gives no probabilities"


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """A chat model of the settings, and what is known of its endpoint."""

    name: str  # "llm" for the default, else that of its table [models.NAME]
    model: str
    address: str
    state: Literal["ok", "failed", "not tested"]
    error: str | None = None
    served: str = ""  # the model that its replies name
    tested: Mapping[str, Any] = field(default_factory=dict)  # what was tested: what came of it
    rejected: Mapping[str, str] = field(default_factory=dict)  # by field: the service's words
    affected: Mapping[str, list[str]] = field(default_factory=dict)  # by what is lacking: names of routes
    kind: Literal["chat"] = "chat"


def chat_endpoints(
    settings: Settings, *, quick: bool, note: Callable[[str], None] = lambda _: None
) -> list[ChatEndpoint]:
    """Each chat model; unless `quick` a remote one is asked a few small questions, past any cache."""
    found = []
    for name in ("", *settings.models):
        note(f"model {name or settings.llm}")
        one = settings.with_model(name)
        try:
            found.append(_examined(name, one, quick))
        except RouteScopeError as error:
            about = ChatEndpoint(name or "llm", one.llm, one.llm_base_url or "embedded", "failed", str(error))
            found.append(replace(about, affected={"chat": asking(name)}))
    return found


def _examined(name: str, settings: Settings, quick: bool) -> ChatEndpoint:
    llm = load_llm(settings)
    backend, about = llm.backend, ChatEndpoint(name or "llm", llm.model, llm.endpoint, "not tested")
    if why := llm.status():
        return replace(about, state="failed", error=why, affected={"chat": asking(name)})
    if isinstance(backend, EmbeddedLLM):
        ours = {"probabilities": True, "schema": True, "context": settings.llm_context}
        return replace(about, tested=ours)
    schema: bool | None = None
    if quick:
        error = last_failure(llm) or None
    else:
        tried = probe(llm, timeout=settings.llm_timeout_s, cancel=threading.Event())
        error, schema = tried.error, None if tried.error else tried.schema
    known = backend.known.get() if backend.known else Profile()
    if quick and not error and not known.served:
        return about
    tested = {
        "chat": error is None,
        "probabilities": known.probabilities,
        "schema": schema,
        "reasoning": known.reasons,
        "reasoning_tokens": known.reasoning_tokens,
        "context": known.context,
    }
    affected = {"chat": asking(name)} if error else {}
    if not error and known.probabilities is False:
        affected[f"verdicts {WORDS}"] = [one for one in asking(name) if _judges(one)]
    if known.truncated:
        affected[f"long prompts: {known.truncated}"] = asking(name)
    state: Literal["ok", "failed"] = "failed" if error else "ok"
    found = ChatEndpoint(about.name, llm.model, llm.endpoint, state, error, known.served, tested, known.said)
    return replace(found, affected=affected)


def line(endpoint: ChatEndpoint) -> str:
    """Describe an endpoint and whether it answers."""
    about = f"{endpoint.name}: {endpoint.model} at {endpoint.address}: {endpoint.state}"
    return f"{about}: {endpoint.error}" if endpoint.error else about


def asking(name: str = "") -> list[str]:
    """Return the routes that call the model of a table [models.NAME], "" for the default."""
    found = [one.name for one in routes().values() if Need.LLM in (*one.every_need, *one.uses)]
    return [f"{one}{AT}{name}" for one in found] if name else found


def _judges(name: str) -> bool:
    """Return True if a route depends on a judgement of its model."""
    route = routes()[name]
    return bool(route.decides) or any(need is Need.LLM for _, need in route.needs_if) or "wise" in route.name


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """A model or service that the settings name: what it was tested for, and which routes need it."""

    name: str
    kind: str  # "embedder" | "reranker"
    model: str
    address: str
    state: Literal["ok", "failed", "not tested"]
    tested: Mapping[str, bool | int | None]  # None: not tested
    error: str | None
    routes: tuple[str, ...]
    corpora: tuple[str, ...] = ()  # that have an embedder's vectors


_STATES: Mapping[bool | None, Literal["ok", "failed", "not tested"]]
_STATES = {True: "ok", False: "failed", None: "not tested"}


def service_reports(settings: Settings, *, quick: bool) -> list[EndpointReport]:
    """Test the embedders and the reranker of the settings; `quick`: only whether they can be called."""
    known = [one for one in catalogue.known(settings) if one.info is not None]
    held = {one.name: catalogue.embedders_of(one.info, settings) for one in known if one.info is not None}
    embedding = tuple(name for name, route in ours().items() if route.embeds)
    found = []
    for name in dict.fromkeys((settings.embedder, *settings.embedders)):
        at, dimension = embedding_endpoint(settings, name, name, "embedder"), None
        error = at.why_not
        if error is None and not quick:
            try:
                dimension = len(load_embedder(name, settings=settings).embed_query("Does it work?"))
            except RouteScopeError as failed:
                error = str(failed)
        works = False if error is not None else None if quick else True
        corpora = tuple(corpus for corpus, there in held.items() if name in there)
        tested = {"embeddings": works, "dimension": dimension}
        about = (name, "embedder", at.model, at.address, _STATES[works])
        found.append(EndpointReport(*about, tested, error, embedding, corpora))
    name, works, error = settings.reranker.strip(), None, None
    if not quick and name not in (EMBEDDED, LLM):
        passages = [Passage(f"doctor/{n}", "doctor", "", text) for n, text in enumerate(("Yes.", "No."))]
        try:
            Rerankers(settings).paired().rerank("Does it work?", passages, timeout=settings.llm_timeout_s)
            works = True
        except RouteScopeError as failed:
            works, error = False, str(failed)
    where, model = name if "://" in name else "in this process", settings.reranker_model or name
    reranking = tuple(one for one, route in ours().items() if "rerank" in route.function.__code__.co_names)
    about = ("reranker", "reranker", model, where, _STATES[works])
    return [*found, EndpointReport(*about, {"rerank": works}, error, reranking)]
