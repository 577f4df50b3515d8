"""The tested capabilities of each configured chat endpoint, and the routes they affect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from core.backends.embedder import load_embedder
from core.backends.llm import load_llm
from core.backends.llm.model import EmbeddedLLM
from core.backends.llm.probe import last_failure, probe
from core.backends.llm.profile import Profile
from core.backends.rerankers import EMBEDDED, LLM, Rerankers
from core.corpus import catalogue
from core.domain.errors import RouteScopeError
from core.domain.models import AT
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Passage
from core.engine.probes import embedding_endpoint
from core.routes.registry import ours, routes

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


def endpoints(settings: Settings, *, quick: bool) -> list[EndpointReport]:
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
