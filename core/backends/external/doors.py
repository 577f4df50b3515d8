"""Asks pipelines that are not ours, each by its door, and keeps what is to be known of each."""

from __future__ import annotations

import atexit
import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from core.backends.admission import ModelQueue, aside
from core.domain.errors import Cancelled, RouteScopeError, Unavailable, describe
from core.domain.external import PipelineReply, parse_reply
from core.domain.pipelines import Pipeline
from core.domain.types import Turn


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """A question as a pipeline is asked it."""

    query: str
    k: int
    history: tuple[Turn, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict)
    trace_id: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "query": self.query,
            "history": [{"role": turn.role, "text": turn.text} for turn in self.history],
            "k": self.k,
            "filters": dict(self.filters),
            "trace_id": self.trace_id,
        }

    def key(self, pipeline: Pipeline) -> str:
        """Return the key of the stored reply: equal for an equal question to the same target; which run asked
        does not count.
        """
        document = {**self.document(), "trace_id": ""}
        facts = {"form": 1, "name": pipeline.name, "target": pipeline.target, "asked": document}
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Called:
    """One call: the reply, its JSON text, and its milliseconds measured here, from the request to the reply
    read and checked. `inside_ms`: what the pipeline's own code took of them, as its process measured.
    """

    reply: PipelineReply
    text: str
    ms: float
    inside_ms: float | None = None


@dataclass(frozen=True, slots=True)
class DoorState:
    """The state of a pipeline in this process."""

    running: bool = False  # True if its process is running
    kind: str = ""  # how it is called
    python: str = ""
    started: str = ""  # ISO 8601, UTC
    start_ms: float | None = None
    starts: int = 0
    calls: int = 0
    failed: int = 0
    last_ms: float | None = None
    error: str = ""
    error_at: str = ""  # ISO 8601, UTC
    stderr: str = ""  # the end of its output


class DoorProtocol(Protocol):
    """One way of asking: `core.backends.external.function` and `.http`."""

    def ask(
        self, asked: Mapping[str, Any], timeout: float, cancel: threading.Event
    ) -> tuple[bytes, float | None]:
        """Return the reply as JSON text, and the milliseconds of the pipeline's own code if known."""

    def ready(self, cancel: threading.Event) -> None:
        """Start what has to be started before a call."""

    def facts(self) -> Mapping[str, Any]:
        """Fields of `DoorState`."""

    def stop(self) -> None:
        """End what was started; a later call starts it again."""


class Live:
    """One pipeline of this process: asked one call at a time, its last error kept."""

    def __init__(self, pipeline: Pipeline, secrets: Sequence[str] = ()) -> None:
        self.pipeline = pipeline
        self._way = _way(pipeline, secrets)
        self._turns, self._lock = ModelQueue(), threading.Lock()
        self._state = DoorState()

    @property
    def state(self) -> DoorState:
        """Return the current state."""
        with self._lock:
            return replace(self._state, **self._way.facts())

    def ask(self, asked: PipelineRequest, *, timeout: float, cancel: threading.Event) -> Called:
        """Call the pipeline and return the reply. Queueing behind an earlier call and starting it are
        excluded from its time.

        Raises Unavailable if it cannot be started, PipelineTimedOut, PipelineFailed, Cancelled, and BadInput
        if the reply is malformed.
        """
        at_once = 1 if self.pipeline.door == "function" else float("inf")
        with self._turns.slot(at_once, cancel):
            try:
                with aside():
                    self._way.ready(cancel)
                    parse_reply("[]", "")  # the first one takes long: what reads replies is made by it
                began = time.perf_counter()
                data, inside = self._way.ask(asked.document(), timeout, cancel)
                reply = parse_reply(data, self.pipeline.owner)
                ms = (time.perf_counter() - began) * 1000
            except Cancelled:
                raise
            except RouteScopeError as error:
                at = datetime.now(UTC).isoformat(timespec="seconds")
                self._count(failed=self._state.failed + 1, error=describe(error), error_at=at)
                raise
            self._count(last_ms=ms)
            return Called(reply, data.decode("utf-8", "replace"), ms, inside)

    def stop(self) -> None:
        """End its process; a later call starts it again."""
        self._way.stop()

    def _count(self, **facts: Any) -> None:
        with self._lock:
            self._state = replace(self._state, calls=self._state.calls + 1, **facts)


def _way(pipeline: Pipeline, secrets: Sequence[str]) -> DoorProtocol:
    if pipeline.door == "http":
        from core.backends.external.http import PipelineEndpoint

        return PipelineEndpoint(pipeline, secrets)
    if pipeline.door == "file":
        from core.backends.external import run_files

        file = run_files.used(pipeline.name)
        if file is None:
            raise Unavailable(f"{pipeline.owner}: its replies are in a file and it cannot be asked")
        return file
    from core.backends.external.function import Function

    return Function(pipeline, secrets)


_live: dict[str, Live] = {}
_lock = threading.Lock()


def live(pipeline: Pipeline, secrets: Sequence[str] = ()) -> Live:
    """Return this process' instance of a pipeline, ending an earlier one with other settings."""
    with _lock:
        known = _live.get(pipeline.name)
        if known is not None and known.pipeline == pipeline:
            return known
        _live[pipeline.name] = now = Live(pipeline, secrets)
    if known is not None:
        known.stop()
    return now


def known(name: str) -> DoorState | None:
    """Return the state of a pipeline called by this process, else None."""
    found = _live.get(name)
    return found.state if found is not None else None


def stop(name: str) -> None:
    """End a pipeline's process; the next question starts it again."""
    if (found := _live.get(name)) is not None:
        found.stop()


@atexit.register
def stop_all() -> None:
    """End every process that was started."""
    with _lock:
        ended = list(_live.values())
        _live.clear()
    for one in ended:
        one.stop()
