"""Tries out what an endpoint can do, for the doctor command and the settings page."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from core.backends.base import LLM, LLMRequest, Message
from core.errors import RouteScopeError

_PLAIN = LLMRequest("probe/1", (Message("user", "Is water wet? Answer yes or no."),), max_tokens=2)
_SCHEMA = {
    "type": "object",
    "properties": {"wet": {"type": "boolean"}},
    "required": ["wet"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What works at an endpoint. `ms` is the time of a two-token call, `error` why even that fails."""

    logprobs: bool
    schema: bool
    ms: float
    error: str | None = None


def probe(llm: LLM, *, timeout: float = 60.0, cancel: threading.Event | None = None) -> Capabilities:
    """Make three small calls, past any cache; an endpoint that fails is told in the result, not raised."""
    target: LLM = getattr(llm, "backend", llm)
    stop = cancel or threading.Event()

    def call(request: LLMRequest) -> float:
        return target.complete(request, timeout=timeout, cancel=stop).ms

    def works(request: LLMRequest) -> bool:
        try:
            call(request)
        except RouteScopeError:
            return False
        return True

    try:
        ms = call(_PLAIN)
    except RouteScopeError as error:
        return Capabilities(logprobs=False, schema=False, ms=0.0, error=str(error))
    schema = replace(_PLAIN, schema=_SCHEMA, max_tokens=40)
    return Capabilities(works(replace(_PLAIN, top_logprobs=5)), works(schema), ms)
