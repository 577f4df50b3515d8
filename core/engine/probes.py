"""The services the engine uses and their tests: models, embedder, reranker, web search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from core.backends.rerankers import EMBEDDED, LLM
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.once import Recent

if TYPE_CHECKING:
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
    found = [embedding_endpoint(now, now.embedder, "embedder", "vectors of questions and passages")]
    try:
        llm = engine.llm()
        found.append(ProbedEndpoint("llm", "language model", llm.model, llm.endpoint, llm.status()))
    except RouteScopeError as error:
        found.append(ProbedEndpoint("llm", "language model", now.llm, "not available", str(error)))
    where = "in this process"
    if "://" in now.reranker:
        where = now.reranker
    elif now.reranker == LLM:
        where = "the language model"
    found.append(ProbedEndpoint("reranker", "reranker", now.reranker_model or now.reranker, where))
    if now.self_rag_base_url:
        found.append(
            ProbedEndpoint("self_rag", "reflection-token model", now.self_rag_model, now.self_rag_base_url)
        )
    found += [
        embedding_endpoint(now, name, f"{SERVICE}{name}", f"vectors by embedder={name}")
        for name in now.embedders
        if name != now.embedder
    ]
    found.append(ProbedEndpoint("web", "web search", now.web_search, now.web_search))
    return found


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
    when = datetime.now(UTC).isoformat(timespec="seconds")
    work = {"embedder": _embedder, "llm": _llm, "reranker": _reranker, "self_rag": _self_rag, "web": _web}
    try:
        if endpoint.name.startswith(SERVICE):
            tried = ProbeResult(when, _embeds(engine, report, endpoint.name.removeprefix(SERVICE)))
        else:
            tried = ProbeResult(when, work[endpoint.name](engine, report, cancel))
    except RouteScopeError as error:
        if cancel.is_set():
            raise
        tried = ProbeResult(when, error=str(error))
    _tried[endpoint] = tried
    return tried


Facts = tuple[tuple[str, str], ...]


def _llm(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    from core.backends.llm.probe import probe
    from core.domain.errors import ModelFailed

    began = time.perf_counter()
    found = probe(engine.llm(), timeout=engine.settings.llm_timeout_s, cancel=cancel, report=report)
    if found.error:
        raise ModelFailed(found.error)
    return (
        ("first answer (2 tokens)", milliseconds(found.ms)),
        ("token probabilities", _yes(found.logprobs)),
        ("JSON schema output", _yes(found.schema)),
        ("streaming", f"yes, {found.pieces} pieces" if found.streams else "no"),
        ("reads", "not reported" if found.read_per_s is None else f"{found.read_per_s:,.0f} tokens a second"),
        (
            "writes",
            "not reported" if found.write_per_s is None else f"{found.write_per_s:,.0f} tokens a second",
        ),
        ("total time", milliseconds((time.perf_counter() - began) * 1000)),
    )


def _self_rag(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    from core.backends.base import LLMRequest, Message

    report("a first answer", 0, 1)
    request = LLMRequest("probe/4", (Message("user", "Is water wet?"),), 2, top_logprobs=5)
    found = engine.reflection().complete(request, timeout=engine.settings.llm_timeout_s, cancel=cancel)
    return (
        ("first answer (2 tokens)", milliseconds(found.ms)),
        ("token probabilities", _yes(any(token.top for token in found.logprobs))),
    )


def _embedder(engine: Engine, report: Report, _cancel: threading.Event) -> Facts:
    return _embeds(engine, report, engine.settings.embedder)


def _embeds(engine: Engine, report: Report, name: str) -> Facts:
    report("a question", 0, 2)
    began = time.perf_counter()
    embedder = engine.embedder(name)
    embedder.embed_query("Is water wet?")
    loaded = time.perf_counter()
    embedder.embed_query("Is ice wet?")
    one = time.perf_counter()
    report("32 passages", 1, 2)
    embedder.embed(_TEXTS)
    many = time.perf_counter()
    return (
        ("dimensions", str(embedder.dim)),
        ("first question, including loading", milliseconds((loaded - began) * 1000)),
        ("next question", milliseconds((one - loaded) * 1000)),
        ("passages", f"{len(_TEXTS) / (many - one):,.0f} a second (short ones)"),
    )


def _reranker(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    from core.domain.types import Passage

    rerankers = engine.rerankers()
    began = time.perf_counter()
    report("loading", 0, 2)
    rerankers.load(rerankers.configured)
    loaded = ("loading, if not already loaded", milliseconds((time.perf_counter() - began) * 1000))
    if rerankers.configured in (EMBEDDED, LLM):
        return (loaded, ("uses", "the corpus index's data on each passage"))[
            : 2 if rerankers.configured == EMBEDDED else 1
        ]
    report("two passages", 1, 2)
    passages = [Passage(f"probe/{n}", "probe", "", text) for n, text in enumerate(_TEXTS[:2])]
    began = time.perf_counter()
    scores = rerankers.paired().rerank("When is it sent back?", passages, cancel=cancel)
    return (
        loaded,
        ("two passages", milliseconds((time.perf_counter() - began) * 1000)),
        ("scores", ", ".join(f"{score:.3f}" for score in scores)),
    )


def _web(engine: Engine, report: Report, cancel: threading.Event) -> Facts:
    report("one search", 0, 1)
    search = engine.web()
    if search is None:
        return (("web search", "none, as configured"),)
    began = time.perf_counter()
    found = search.search("weather", 5, timeout=min(10.0, engine.settings.llm_timeout_s), cancel=cancel)
    took = milliseconds((time.perf_counter() - began) * 1000)
    return (("kind", search.label), ("results", f"{len(found)} in {took}"))


def _yes(value: bool) -> str:
    return "yes" if value else "no"
