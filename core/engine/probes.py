"""The services the engine uses and their tests: models, embedder, reranker, web search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from core.backends.rerankers import EMBEDDED, LLM
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.once import Recent
from core.domain.settings import Settings
from core.engine.engine import Engine

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
    from core.backends.llm.probe import last_failure

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
    from core.backends.llm.probe import probe
    from core.domain.errors import ModelFailed

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
    from core.domain.types import Passage

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
