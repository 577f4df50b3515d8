"""Tests what the endpoint of a chat model can do, for the doctor command and the settings page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from core.backends.base import LLM, Completion, LLMRequest, Message
from core.domain.errors import Cancelled, RouteScopeError

_PLAIN = LLMRequest("probe/1", (Message("user", "Is water wet? Answer yes or no."),), max_tokens=2)
_LONG = "The depot opens at six, the first vans leave at seven, and the last one is back by nine. " * 24
_READ = LLMRequest("probe/2", (Message("user", f"{_LONG}\n\nWhen do the vans leave?"),), max_tokens=1)
_WRITE = LLMRequest("probe/3", (Message("user", "Count from 1 to 60, one number a line."),), max_tokens=64)
_WET = {"properties": {"wet": {"type": "boolean"}}, "required": ["wet"]}
_SCHEMA = {"type": "object", "additionalProperties": False, **_WET}
Report = Callable[[str, int, int], None]  # (what is tried, done, of how many)
Written = Callable[[str], None] | None


def probe(
    llm: LLM,
    *,
    timeout: float = 60.0,
    cancel: threading.Event | None = None,
    report: Report = lambda _what, _done, _total: None,
    brief: bool = False,
) -> dict[str, Any]:
    """Make five small calls, bypassing any cache, and return what they showed; only the first if `brief`.

    Raises the first one's error, after storing it with what is known of a service until that answers. A
    later call that fails shows that the endpoint cannot do it.
    """
    target: Any = getattr(llm, "backend", llm)
    stop, grown = cancel or threading.Event(), list[str]()

    def call(what: str, done: int, request: LLMRequest, written: Written = None) -> Completion:
        report(what, done, 5)
        found: Completion = target.complete(request, timeout=timeout, cancel=stop, written=written)
        return found

    def tried(*asked: Any) -> Completion | None:
        try:
            return call(*asked)
        except Cancelled:
            raise
        except RouteScopeError:
            return None

    try:
        first = call("a first answer", 0, _PLAIN)
    except RouteScopeError as error:
        if not isinstance(error, Cancelled) and getattr(target, "known", None) is not None:
            target.known.change(partial(replace, failed=str(error)))
        raise
    facts: dict[str, Any] = {"chat": True, "first answer (2 tokens), ms": first.ms}
    if brief:
        return facts
    likely = tried("token probabilities", 1, replace(_PLAIN, top_logprobs=5))
    formed = tried("JSON of a schema", 2, replace(_PLAIN, schema=_SCHEMA, max_tokens=40))
    wrote = tried("writing, streamed", 3, _WRITE, grown.append)
    read = tried("reading a prompt", 4, _READ)
    return facts | {
        "probabilities": likely is not None and any(token.top for token in likely.logprobs),
        "schema": formed is not None and _is_json(formed.text),
        "streaming": len(grown) > 1,
        "tokens read per second": read and _speed(read, read.prompt_tokens - read.cached_tokens),
        "tokens written per second": wrote and _speed(wrote, wrote.completion_tokens),
    }


def _speed(made: Completion, tokens: int) -> float | None:
    """Return the tokens per second of a call, or None if it reported none."""
    return tokens / made.ms * 1000 if tokens > 0 and made.ms > 0 else None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
