"""Calls an OpenAI-compatible endpoint with an exact deadline; a call no longer wanted is ended at once."""

from __future__ import annotations

import concurrent.futures
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from core.backends.base import Completion, LLMRequest
from core.backends.llm import wire
from core.backends.llm.stream import EndedEarly, streamed
from core.backends.llm.wire import CONNECT_S, GONE
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut

if TYPE_CHECKING:
    import asyncio

    import openai

    from core.domain.errors import ModelFailed

T = TypeVar("T")
log = logging.getLogger(__name__)
LOOK_S = 0.02  # how often a waiting thread looks at its cancel event
HINTS = {
    401: "refused the API key (401); set llm_api_key",
    403: "refuses access (403) with this API key",
    404: "knows no such model or address (404); check llm and llm_base_url",
    429: "is asked too often or the quota is used up (429)",
    503: "is overloaded or still loading (503)",
}
LATER = (429, 503)  # the statuses that mean: ask again later
AGAIN = 5  # times that is done
MOMENT_S = 0.05  # the least that is waited
PAUSE_S = 0.5  # before the first of them where the endpoint does not say how long; twice as long each time


class ChatClient:
    """One endpoint, one model, any number of threads. Nothing is imported or opened before the first call."""

    hints = HINTS

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        key: str,
        label: str,
        embedded: bool = False,
        private: bool = True,
        secrets: Sequence[str] = (),
    ) -> None:
        """`private`: whether the endpoint may be on this machine or its own network. `secrets` are taken out
        of what it says, as `key` is.
        """
        self.base_url = base_url
        self.model = model
        self._key = key
        self._embedded = embedded
        self._private = private
        self._words = wire.Words(label, (key, *secrets))
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
        """One call. Raises ModelFailed (ConnectionLost), ModelTimedOut, Cancelled.

        It is repeated only where the endpoint asks for that (429, 503), after as long as it says, and never
        beyond `timeout`. With `written` the answer is streamed, unless token probabilities or JSON are asked
        for. Nothing that comes back holds the key.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        if request.top_logprobs or request.schema is not None:
            written = None  # nobody reads those while they are written
        end = time.monotonic() + timeout
        data, ms = run_call(self._call(request, written, end), self._words.label, timeout, cancel)
        return wire.without_secrets(self._read(data, request, ms=ms, created=created), self._words)

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

        async with client(self._key, private=True, keep_alive=False) as asked:
            try:
                answer = await asked.get(f"{self.base_url.removesuffix('/v1')}/props")
            except httpx2.HTTPError as error:
                raise self._words.failed("cannot be asked", str(error)) from None
        if answer.status_code != 200:
            raise self._words.failed(f"answered with status {answer.status_code}")
        return bytes(answer.content)

    async def _call(
        self, request: LLMRequest, written: Callable[[str], None] | None, end: float
    ) -> tuple[bytes, float]:
        """The body of the answer and the milliseconds it took, without those of the first import and those
        waited because the endpoint asked for it. `end` is on time.monotonic().
        """
        import asyncio

        import httpx2
        import openai

        from core.backends.llm.transport import unreachable

        client = self._open()
        fields = self._fields(request)
        create = self._create(client)  # imports more at its first use
        told = None if written is None else lambda text: written(self._words.clean(text))
        pauses = (PAUSE_S * 2**n for n in range(AGAIN))
        while True:
            began = time.perf_counter()
            try:
                if told is None:
                    data = bytes((await create(**fields)).content)
                else:
                    data = await streamed(client, fields, told)
            except openai.APIStatusError as error:
                pause = next(pauses, None) if error.status_code in LATER else None
                if pause is None:
                    raise self._refusal(error) from None
                asked = wire.retry_after(error.response.headers.get("retry-after"), datetime.now(UTC))
                pause = pause if asked is None else max(asked, MOMENT_S)
                if time.monotonic() + pause >= end:
                    raise self._refusal(
                        error, f"; it asks to wait {pause:.3g} s, longer than it has"
                    ) from None
                await asyncio.sleep(pause)
            except openai.APITimeoutError:
                raise self._words.lost(f"took no connection in {CONNECT_S:g} s") from None
            except (openai.APIConnectionError, httpx2.HTTPError) as error:
                cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else None
                raise self._words.lost(unreachable(cause or error, self._words)) from None
            except EndedEarly as error:
                raise self._words.lost(f"{GONE} after {error} characters of its answer") from None
            except openai.OpenAIError as error:
                raise self._words.failed(
                    f"could not be called ({type(error).__name__})", str(error)
                ) from None
            else:
                return data, (time.perf_counter() - began) * 1000

    def _refusal(self, error: openai.APIStatusError, more: str = "") -> ModelFailed:
        status = error.status_code
        if 300 <= status < 400:
            return self._words.failed(f"redirects elsewhere ({status}), which is not followed")
        what = self.hints.get(status, f"answered with status {status}")
        return self._words.failed(what + more, error.response.content)

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
                http_client=client(self._key, private=self._private, keep_alive=not self._embedded),
            )
        return self._client


def run_call(call: Coroutine[Any, Any, T], label: str, timeout: float, cancel: threading.Event) -> T:
    """Run `call` on the shared loop; cancel or the deadline ends it, which closes its connection."""
    deadline = time.monotonic() + timeout
    if cancel.is_set():
        call.close()
        raise Cancelled(f"stopped before {label} was called")
    import asyncio  # with ssl and sockets a tenth of what is loaded before a first search, which calls nobody

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
    import asyncio

    with _starting:
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="llm-client", daemon=True).start()
        return _loops[os.getpid()]
