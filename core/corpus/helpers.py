"""Workers that embed passages and call models for an index, and their messages.

Texts are sent in steps, as one process embeds them, so that the vectors are equal; the client stores results
as they arrive.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from core.backends.base import Completion, Embedder, LLMRequest, Matrix, Message
from core.backends.embedder import identity, load_embedder
from core.backends.llm.cache import from_plain, to_plain
from core.backends.workers.place import WorkPlace
from core.domain.errors import ModelFailed, Unavailable
from core.domain.machine import here
from core.domain.settings import Settings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from core.backends.llm import CachedLLM
    from core.backends.workers.pool import Pool

CALL_S = 600.0  # of one call of a model, as in core.corpus.enrichments.recipe
Batches = Iterable[tuple[int, Sequence[str]]]  # numbered steps of texts
Stop = Callable[[], bool]


class Helpers:
    """The workers of a place, started or connected to when there is a text to embed. Of one thread."""

    def __init__(self, place: WorkPlace, settings: Settings) -> None:
        self._place, self._settings = place, settings
        self._pool: Pool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection, and end the workers of this machine."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def embed(self, name: str, known_as: str, batches: Batches, stop: Stop) -> Iterator[tuple[int, Matrix]]:
        """Yield the vectors of each step, shape (n, dim), in order of completion. Stops early on request."""
        for number, data in self.made(f"{__name__}:embedded", name, batches, stop, known_as):
            rows = int.from_bytes(data[:8], "little")
            yield number, np.frombuffer(data, np.float32, offset=8).reshape(rows, -1)

    def made(
        self, task: str, name: str, batches: Batches, stop: Stop, known_as: str = ""
    ) -> Iterator[tuple[int, bytes]]:
        """Yield what the function `task` returns for the texts of each step, by the model `name`."""
        about = {"name": name, "identity": known_as or identity(name)}
        calls = ((number, {**about, "texts": list(texts)}) for number, texts in batches)
        yield from self._open(stop).each(task, calls, stop)

    def complete(
        self, llm: str, requests: Sequence[LLMRequest], stop: Stop
    ) -> Iterator[tuple[int, Completion | ModelFailed]]:
        """Yield the answer of model `llm` of the settings to each request, in order of completion."""
        calls = ((number, {"llm": llm, "request": asdict(one)}) for number, one in enumerate(requests))
        for number, data in self._open(stop).each(f"{__name__}:completed", calls, stop):
            told = json.loads(data)
            if "failed" in told:
                yield number, ModelFailed(told["failed"])
            else:
                yield number, replace(from_plain(told["completion"], "recording"), source=told["source"])

    def _open(self, stop: Stop) -> Pool:
        from core.backends.workers.pool import Pool

        if self._pool is None:
            self._pool = Pool(self._place, self._settings, ended=stop).open()
        return self._pool


def helpers(place: WorkPlace | None, settings: Settings) -> AbstractContextManager[Helpers | None]:
    """Return the workers of a place as a context; None for this process."""
    return nullcontext() if place is None else Helpers(place, settings)


# In a worker.


def embedded(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """Return the vectors of some texts: their number, 8 bytes, then float32 by rows, both little-endian."""
    name = payload["name"]
    check(name, payload["identity"])
    embedder: Embedder = _loaded(id(settings), name, lambda: load_embedder(name, settings=settings))
    vectors = np.ascontiguousarray(embedder.embed(payload["texts"]), "<f4")
    return len(vectors).to_bytes(8, "little") + vectors.tobytes()


def completed(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """Return a model's answer, or why it failed. Raises Unavailable if the model cannot be called at all."""
    from core.backends.llm import load_llm
    from core.backends.workers.inside import watch

    class Unwanted(threading.Event):
        """Set once who asked wants the answer no longer."""

        wanted_no_more = staticmethod(watch())

        def is_set(self) -> bool:
            return self.wanted_no_more()

    asked, name = payload["request"], payload["llm"]
    parts = {"messages": tuple(Message(**one) for one in asked["messages"]), "stop": tuple(asked["stop"])}
    request = LLMRequest(**{**asked, **parts})
    now = settings.model_copy(update={"llm": name})
    llm: CachedLLM = _loaded(id(settings), f"llm {name}", lambda: load_llm(now))
    if reason := llm.status():
        raise Unavailable(f"machine {here().host}: {reason}")
    try:
        made = llm.complete(request, timeout=CALL_S, cancel=Unwanted())
    except ModelFailed as error:
        return json.dumps({"failed": str(error)}).encode()
    return json.dumps({"completion": to_plain(made), "source": made.source}).encode()


def check(name: str, wanted: str) -> None:
    """Check that this worker has the wanted weights. Raises Unavailable if it has others."""
    if identity(name) != wanted:
        raise Unavailable(
            f"machine {here().host} has other weights of model {name} ({identity(name)}, wanted {wanted}); "
            "copy the model there"
        )


_models: dict[tuple[int, str], Any] = {}


def _loaded(settings: int, name: str, load: Callable[[], Any]) -> Any:
    """Return a model of this process with the same settings, loaded once."""
    key = (settings, name)
    if key not in _models:
        _models[key] = load()
    return _models[key]
