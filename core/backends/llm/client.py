"""Calls an OpenAI-compatible endpoint with an exact deadline; a call no longer wanted is ended at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from core.backends.base import Completion, LLMRequest
from core.backends.llm import wire
from core.backends.llm.stream import streamed
from core.errors import Cancelled, ModelFailed, ModelTimedOut

if TYPE_CHECKING:
    import openai

T = TypeVar("T")
log = logging.getLogger(__name__)
CONNECT_S = 5.0
LOOK_S = 0.02  # how often a waiting thread looks at its cancel event
HINTS = {
    401: "refused the API key (401); set llm_api_key",
    403: "refuses access (403) with this API key",
    404: "knows no such model or address (404); check llm and llm_base_url",
    429: "is asked too often or the quota is used up (429)",
}


class ConnectionLost(ModelFailed):
    """The endpoint could not be reached, or went away during the call."""


class ChatClient:
    """One endpoint, one model, any number of threads. Nothing is imported or opened before the first call."""

    hints = HINTS

    def __init__(self, base_url: str, *, model: str, key: str, label: str, embedded: bool = False) -> None:
        self.base_url = base_url
        self.model = model
        self._key = key
        self._embedded = embedded
        self._words = wire.Words(label, (key,))
        self._openai = urlsplit(base_url).hostname == "api.openai.com"
        self._client: openai.AsyncOpenAI | None = None

    def complete(
        self,
        request: LLMRequest,
        *,
        timeout: float,
        cancel: threading.Event,
        written: Callable[[str], None] | None = None,
    ) -> Completion:
        """One call, never repeated. Raises ModelFailed (ConnectionLost), ModelTimedOut, Cancelled.

        With `written` the answer is streamed, unless token probabilities or JSON are asked for.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        if request.top_logprobs or request.schema is not None:
            written = None  # nobody reads those while they are written
        data, ms = run_call(self._call(request, written), self._words.label, timeout, cancel)
        return self._read(data, request, ms=ms, created=created)

    def slots(self, timeout: float, cancel: threading.Event) -> int:
        """How many calls the server works at side by side, by llama.cpp's `/props`; 1 where it does not tell.

        Raises Cancelled.
        """
        try:
            told = run_call(self._props(), self._words.label, min(timeout, CONNECT_S), cancel)
            found = json.loads(told)["total_slots"]
            if type(found) is int and found >= 1:
                return found
            why = f"total_slots is {found!r}"
        except (ModelFailed, ModelTimedOut, ValueError, KeyError, TypeError) as error:
            why = str(error)
        log.warning("%s does not tell how many calls it serves at once (%s); one is taken for it",
                    self._words.label, self._words.excerpt(why))  # fmt: skip
        return 1

    async def _props(self) -> bytes:
        import httpx2

        from core.backends.llm.transport import client

        async with client(self._key, keep_alive=False) as asked:
            try:
                answer = await asked.get(f"{self.base_url.removesuffix('/v1')}/props")
            except httpx2.HTTPError as error:
                raise self._words.failed("cannot be asked", str(error)) from None
        if answer.status_code != 200:
            raise self._words.failed(f"answered with status {answer.status_code}")
        return bytes(answer.content)

    async def _call(self, request: LLMRequest, written: Callable[[str], None] | None) -> tuple[bytes, float]:
        """The body of the answer and the milliseconds it took, without those of the first import."""
        import openai

        client = self._open()
        fields = self._fields(request)
        create = self._create(client)  # imports more at its first use
        began = time.perf_counter()
        try:
            if written is None:
                data = bytes((await create(**fields)).content)
            else:
                data = await streamed(client, fields, written)
        except openai.APIStatusError as error:
            status = error.status_code
            if 300 <= status < 400:
                raise self._words.failed(f"redirects elsewhere ({status}), which is not followed") from None
            what = self.hints.get(status, f"answered with status {status}")
            raise self._words.failed(what, error.response.content) from None
        except openai.APITimeoutError:
            raise ConnectionLost(f"{self._words.label} took no connection in {CONNECT_S:g} s") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            why = f"{type(cause).__name__}: {self._words.excerpt(str(cause))}"
            raise ConnectionLost(f"{self._words.label} cannot be reached ({why})") from None
        except openai.OpenAIError as error:
            raise self._words.failed(f"could not be called ({type(error).__name__})", str(error)) from None
        return data, (time.perf_counter() - began) * 1000

    def _fields(self, request: LLMRequest) -> dict[str, Any]:
        return wire.body(request, model=self.model, embedded=self._embedded, openai=self._openai)

    def _create(self, client: openai.AsyncOpenAI) -> Callable[..., Any]:
        return client.chat.completions.with_raw_response.create

    def _read(self, data: bytes, request: LLMRequest, *, ms: float, created: str) -> Completion:
        return wire.read(data, request, self._words, model=self.model, ms=ms, created=created)

    def _open(self) -> openai.AsyncOpenAI:
        """The client, made on the loop's thread; a call ends by its own deadline, so reads have none."""
        if self._client is None:
            import openai

            from core.backends.llm.transport import client

            self._client = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                max_retries=0,
                http_client=client(self._key, keep_alive=not self._embedded),
            )
        return self._client


def run_call(call: Coroutine[Any, Any, T], label: str, timeout: float, cancel: threading.Event) -> T:
    """Run `call` on the shared loop; cancel or the deadline ends it, which closes its connection."""
    deadline = time.monotonic() + timeout
    if cancel.is_set():
        call.close()
        raise Cancelled(f"stopped before {label} was called")
    future = asyncio.run_coroutine_threadsafe(call, _loop())
    while not future.done():
        left = deadline - time.monotonic()
        if cancel.is_set() or left <= 0:
            future.cancel()
            if cancel.is_set():
                raise Cancelled(f"stopped while {label} was answering")
            raise ModelTimedOut(f"{label} did not answer within {timeout:.3g} s")
        concurrent.futures.wait([future], timeout=min(LOOK_S, left))
    return future.result()


_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by process id: a forked child has none of our threads
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The one event loop of this process, in a thread of its own."""
    with _starting:
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="llm-client", daemon=True).start()
        return _loops[os.getpid()]
