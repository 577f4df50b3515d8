"""Tries out what an endpoint can do, for the doctor command and the settings page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from core.backends.base import LLM, Completion, LLMRequest, Message
from core.backends.llm.profile import StoredProfile
from core.domain.errors import Cancelled, RouteScopeError

_PLAIN = LLMRequest("probe/1", (Message("user", "Is water wet? Answer yes or no."),), max_tokens=2)
_LONG = "The depot opens at six, the first vans leave at seven, and the last one is back by nine. " * 24
_READ = LLMRequest("probe/2", (Message("user", f"{_LONG}\n\nWhen do the vans leave?"),), max_tokens=1)
_WRITE = LLMRequest("probe/3", (Message("user", "Count from 1 to 60, one number a line."),), max_tokens=64)
_WET = {"properties": {"wet": {"type": "boolean"}}, "required": ["wet"]}
_SCHEMA = {"type": "object", "additionalProperties": False, **_WET}
Report = Callable[[str, int, int], None]  # (what is tried, done, of how many)
Written = Callable[[str], None] | None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The tested capabilities of an endpoint."""

    logprobs: bool
    schema: bool
    ms: float  # duration of a two-token call
    error: str | None = None  # why even that call failed
    pieces: int = 0  # number of growth steps of a streamed text
    # tokens per second, measured in one call; None if it failed or reported no tokens
    read_per_s: float | None = None
    write_per_s: float | None = None  # likewise

    @property
    def streams(self) -> bool:
        """Return True if the endpoint streams its text."""
        return self.pieces > 1


def probe(
    llm: LLM,
    *,
    timeout: float = 60.0,
    cancel: threading.Event | None = None,
    report: Report = lambda _what, _done, _total: None,
) -> Capabilities:
    """Make five small calls, bypassing any cache; a failing endpoint is reported in the result, not raised.

    Raises Cancelled only.
    """
    target: LLM = getattr(llm, "backend", llm)
    stop = cancel or threading.Event()
    grown: list[int] = []

    def tried(request: LLMRequest, written: Written = None) -> Completion | RouteScopeError:
        try:
            return target.complete(request, timeout=timeout, cancel=stop, written=written)
        except Cancelled:
            raise
        except RouteScopeError as error:
            return error

    report("a first answer", 0, 5)
    first = tried(_PLAIN)
    if not isinstance(first, Completion):
        remember(target, str(first))
        return Capabilities(logprobs=False, schema=False, ms=0.0, error=str(first))
    report("token probabilities", 1, 5)
    logprobs = tried(replace(_PLAIN, top_logprobs=5))
    report("JSON of a schema", 2, 5)
    schema = tried(replace(_PLAIN, schema=_SCHEMA, max_tokens=40))
    report("writing, streamed", 3, 5)
    wrote = tried(_WRITE, lambda text: grown.append(len(text)))
    report("reading a prompt", 4, 5)
    read = tried(_READ)
    return Capabilities(
        any(token.top for token in getattr(logprobs, "logprobs", ())),
        _is_json(getattr(schema, "text", "")),
        first.ms,
        pieces=len(grown),
        read_per_s=_speed(read, "prompt_tokens", "cached_tokens"),
        write_per_s=_speed(wrote, "completion_tokens"),
    )


def remember(llm: LLM, why: str) -> None:
    """Store with what is known of a service why it did not answer a test; its next answer clears that."""
    known: StoredProfile | None = getattr(llm, "known", None)
    if known is not None:
        known.change(partial(replace, failed=why))


def last_failure(llm: LLM) -> str | None:
    """Return why a service did not answer when last tested; "" if it has answered since or was not tested.
    Return None for backends that are not a service.
    """
    known: StoredProfile | None = getattr(getattr(llm, "backend", llm), "known", None)
    return None if known is None else known.get().failed


def _speed(made: Completion | RouteScopeError, counted: str, without: str = "") -> float | None:
    """Return the tokens per second of a call, or None if it failed or reported none."""
    tokens = getattr(made, counted, 0) - (getattr(made, without, 0) if without else 0)
    return tokens / made.ms * 1000 if isinstance(made, Completion) and tokens > 0 and made.ms > 0 else None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
