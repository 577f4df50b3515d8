"""Calls an OpenAI-compatible endpoint with an exact deadline; a call no longer wanted is ended at once."""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from core.backends.base import Completion, LLMRequest
from core.backends.llm import charging, pace, reasoning, rejections, wire
from core.backends.llm.profile import (
    FIRST_REASONING,
    MOST_REASONING,
    TRUSTED,
    Profile,
    StoredProfile,
    limit,
    parts,
)
from core.backends.llm.stream import EndedEarly, streamed
from core.backends.llm.wire import CONNECT_S, GONE, ConnectionLost
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut

if TYPE_CHECKING:
    import asyncio

    import openai

T = TypeVar("T")
LOOK_S = 0.02  # how often a waiting thread looks at its cancel event
WHICH = "deadline of one call: the setting llm_timeout_s"


class RequestRejected(Exception):
    """A request rejected by the service: its status, its words, and our explanation."""

    def __init__(self, status: int, data: bytes, failure: ModelFailed) -> None:
        super().__init__(status)
        self.status, self.data, self.failure = status, data, failure


class ChatClient:
    """One endpoint, one model, any number of threads. Nothing is imported or opened before the first call."""

    hints: Mapping[int, str] = {
        401: "refused the API key (401); set llm_api_key",
        403: "refuses access (403) with this API key",
        404: "knows no such model or address (404); check llm and llm_base_url",
        429: "is asked too often or the quota is used up (429)",
        503: "is overloaded or still loading (503)",
    }

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
        known: StoredProfile | None = None,
        thinking: int | None = 0,
        effort: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`private`: whether the endpoint may be on this machine or its own network. `secrets` are taken out
        of what it says, as `key` is. `known`: what was learned of it; without, it takes all
        that we send. `thinking`: tokens to reason with, None for what was learned; `effort`: "" for the
        default. `headers`: further ones that it wants.
        """
        self.base_url, mark, version = base_url.partition("?api-version=")
        self._query = {"api-version": version} if mark else None
        self.model = model
        self._key = key
        self._embedded = embedded
        self._private = private
        self._words = wire.EndpointWords(label, (key, *secrets))
        self._known, self._thinking, self._effort = known, thinking, effort
        self._pace = pace.pace(base_url)
        azure = mark or (urlsplit(base_url).hostname or "").endswith(".azure.com")
        self._headers = {**({"api-key": key} if azure and key else {}), **(headers or {})}
        self._client: openai.AsyncOpenAI | None = None

    def complete(
        self,
        request: LLMRequest,
        *,
        timeout: float,
        cancel: threading.Event,
        written: Callable[[str], None] | None = None,
    ) -> Completion:
        """One answer. Raises ModelFailed (ConnectionLost), ModelTimedOut, Cancelled.

        The call is made again, never beyond `timeout`, where a failure may pass, where the service rejects a
        field, and where the model's reasoning left no room for an answer. With `written` the answer is
        streamed, unless token probabilities or JSON are asked for. Nothing that comes back holds the key.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        if request.top_logprobs or request.schema is not None:
            written = None  # nobody reads those while they are written
        if self._known is None:
            attempt = _Attempt(timeout, cancel, written, created)
            try:
                return self._asked(request, TRUSTED, attempt)
            except wire.Empty as error:
                if not (error.cut and error.reasoning and self._thinking == 0):
                    raise
                self._thinking = FIRST_REASONING
                return self._asked(request, TRUSTED, attempt)

        def untried(profile: Profile) -> set[str]:
            return parts(self._fields(request, profile, written is not None), profile)

        with self._known.turn(untried, cancel, timeout):
            return self._learning(request, self._known, _Attempt(timeout, cancel, written, created))

    def _learning(self, request: LLMRequest, known: StoredProfile, attempt: _Attempt) -> Completion:
        """Answer a request in a form that the service accepts, remembering what it rejects."""
        guess: Profile | None = None  # what is left out without being named, until it is accepted
        left: list[str] | None = None
        while True:
            profile = guess or known.get()
            fields = self._fields(request, profile, attempt.written is not None)
            untried = parts(fields, profile) - set(profile.proven)
            try:
                answer = self._asked(request, profile, attempt)
            except RequestRejected as error:
                said = rejections.parse(error.data)
                said = replace(said, text=self._words.clean(said.text))
                if (size := rejections.window(said)) is not None:
                    known.change(partial(replace, context=size, context_from="an error"))
                if (found := rejections.learned(error.status, said, fields, profile, untried)) is not None:
                    if guess is None:
                        known.change(partial(_instead, found))
                    else:
                        guess = found
                    continue
                left = rejections.guesses(fields, untried) if left is None else left
                if error.status == 403 or not left or rejections.elsewhere(said):
                    raise error.failure from None
                guess = profile.without(left.pop(0), said.text[:200])
            except wire.NoToolCall as error:
                known.change(partial(Profile.without, name="tools", why=str(error)))
                guess = guess and guess.without("tools")
            except wire.Empty as error:
                more = max(FIRST_REASONING, 4 * profile.allowance(self._thinking))
                if not error.cut or more > MOST_REASONING or self._thinking is not None:
                    raise
                known.change(partial(replace, reasons=True, reasoning_tokens=more))
                guess = None if guess is None else replace(guess, reasons=True, reasoning_tokens=more)
            else:
                self._learn(known, guess, request, fields, answer, attempt)
                return answer

    def _learn(
        self,
        known: StoredProfile,
        guess: Profile | None,
        request: LLMRequest,
        fields: dict[str, Any],
        answer: Completion,
        attempt: _Attempt,
    ) -> None:
        """Store what an answer reveals about the service."""
        thought = bool(answer.reasoning or answer.reasoning_tokens)

        def changed(now: Profile) -> Profile:
            now = now if guess is None else replace(guess, proven=now.proven)
            given, reasons = now.probabilities, thought or now.reasons
            if "logprobs" in now.dropped:
                given = False
            elif request.top_logprobs and "logprobs" in fields and not given:
                given = bool(answer.logprobs)
            if reasons is None and answer.finish != "length":
                reasons = False
            return replace(
                now,
                proven=tuple(sorted({*now.proven, *parts(fields, now)})),
                served=answer.model,
                failed="",
                probabilities=given,
                reasons=reasons,
                reasoning_tokens=max(now.reasoning_tokens, FIRST_REASONING if thought else 0),
                unopened=now.unopened or (thought and answer.unopened),
            )

        if changed(known.get()) != known.get():
            known.change(changed)
        if not known.get().context_from:
            size, left = None, min(CONNECT_S, attempt.left())
            with suppress(ModelFailed, ValueError, RecursionError):
                listed = run_call(self._get(f"{self.base_url}/models"), "", left, attempt.cancel)
                size = context_of(json.loads(listed), self.model)
            known.change(
                partial(replace, context=size, context_from="its list of models" if size else "not told")
            )

    def _asked(self, request: LLMRequest, profile: Profile, attempt: _Attempt) -> Completion:
        """One answer to one form of the request; failures that may pass are tried again."""
        fields = self._fields(request, profile, attempt.written is not None)
        written = attempt.written if "stream" in fields else None
        told: Callable[[str], None] | None = None
        if written is not None:

            def told(text: str) -> None:
                shown, _ = reasoning.split(text, unopened=profile.unopened, ended=False)
                written(self._words.clean(shown))

        charge, created = charging.current(), attempt.created

        def tried(left: float) -> Completion:
            call = self._call(fields, told, charge)
            data, ms = run_call(call, self._words.label, left, attempt.cancel, attempt.timeout, WHICH)
            found = replace(self._read(data, request, profile, limit(fields)), ms=ms, created=created)
            return wire.without_secrets(found, self._words)

        def final(error: Exception) -> bool:
            return isinstance(error, ConnectionLost) and (self._embedded or not error.midway)

        return self._pace.patiently(tried, self._words, attempt.left(), attempt.cancel, final=final)

    async def _get(self, url: str) -> bytes:
        import httpx2

        from core.backends.llm.transport import client

        async with client(self._key, private=self._private, keep_alive=False, own=self._headers) as asked:
            try:
                answer = await asked.get(url, params=self._query)
            except httpx2.HTTPError as error:
                raise self._words.failed("cannot be asked", str(error)) from None
        if answer.status_code != 200:
            raise self._words.failed(f"answered with status {answer.status_code}")
        return bytes(answer.content)

    async def _call(
        self, fields: dict[str, Any], told: Callable[[str], None] | None, charge: charging.DailyCharge
    ) -> tuple[bytes, float]:
        """Return the body of the answer and its milliseconds, without those of the first import."""
        import httpx2
        import openai

        from core.backends.llm.transport import unreachable

        client = self._open()
        create = self._create(client)  # imports more at its first use
        began = time.perf_counter()
        before, charge.sent = charge.sent, True
        try:
            if told is None:
                answer = await create(**fields)
                data = bytes(answer.content)
                if (wait := pace.exhausted(answer.headers)) is not None:
                    self._pace.hold(wait)
            else:
                data = await streamed(client, fields, told)
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APITimeoutError:
            charge.sent = before
            raise self._words.lost(f"took no connection in {CONNECT_S:g} s") from None
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else None
            lost = self._words.lost(unreachable(cause or error, self._words))
            charge.sent = before or lost.midway
            raise lost from None
        except EndedEarly as error:
            raise self._words.lost(f"{GONE} after {error} characters of its answer") from None
        except openai.OpenAIError as error:
            raise self._words.failed(f"could not be called ({type(error).__name__})", str(error)) from None
        return data, (time.perf_counter() - began) * 1000

    def _refusal(self, error: openai.APIStatusError) -> Exception:
        status, data = error.status_code, bytes(error.response.content)
        failure = self._words.refused(status, data, self.hints)
        if wire.passes(status, data):
            return wire.Passing(failure, pace.asked_wait(error.response.headers, data))
        if wire.spent(data):
            return self._words.failed("has no quota left for this key, which is not asked again", data)
        learns = self._known and status in rejections.STATUSES
        return RequestRejected(status, data, failure) if learns else failure

    def _fields(self, request: LLMRequest, profile: Profile, stream: bool) -> dict[str, Any]:
        return wire.body(
            request,
            model=self.model,
            embedded=self._embedded,
            profile=profile,
            thinking=self._thinking,
            effort=self._effort,
            # Before it is known whether the model reasons aloud, nobody is shown what it writes.
            stream=stream and profile.reasons is not None,
        )

    def _create(self, client: openai.AsyncOpenAI) -> Callable[..., Any]:
        return client.chat.completions.with_raw_response.create

    def _read(self, data: bytes, request: LLMRequest, profile: Profile, limit: int) -> Completion:
        return wire.read(data, request, self._words, self.model, profile, limit)

    def _open(self) -> openai.AsyncOpenAI:
        """Create the client on the loop's thread; reads have no timeout, as a call ends by its own
        deadline.
        """
        if self._client is None:
            import openai

            from core.backends.llm.transport import client

            self._client = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                max_retries=0,
                default_query=self._query,
                http_client=client(
                    self._key, private=self._private, keep_alive=not self._embedded, own=self._headers
                ),
            )
        return self._client


_WINDOW = re.compile("max_model_len|context_length|context_window|max_context_length|inputTokenLimit|n_ctx")


def context_of(listed: Any, model: str) -> int | None:
    """Return the context length of `model` from any known field of a list of models, or None."""
    data = listed.get("data", listed.get("models")) if isinstance(listed, dict) else listed
    entries = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    own = [one for one in entries if model in (one.get("id"), one.get("name"))] or entries
    if len(own) != 1:
        return None
    for one in (own[0], *(own[0].get(name) for name in ("meta", "top_provider", "limits"))):
        for name, size in one.items() if isinstance(one, dict) else ():
            if _WINDOW.fullmatch(name) and type(size) is int and size > 0:
                return size
    return None


def _instead(profile: Profile, _before: Profile) -> Profile:
    return profile


@dataclass(slots=True)
class _Attempt:
    """The state shared by all attempts of one call."""

    timeout: float
    cancel: threading.Event
    written: Callable[[str], None] | None
    created: str
    began: float = field(default_factory=lambda: time.monotonic())

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.began + self.timeout - time.monotonic()


def run_call(
    call: Coroutine[Any, Any, T],
    label: str,
    timeout: float,
    cancel: threading.Event,
    whole: float | None = None,
    which: str = "",
) -> T:
    """Run `call` on the shared loop; cancel or the deadline ends it, which closes its connection. The message
    names the `whole` time, of which `timeout` is left, and `which` deadline that is.
    """
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
            named = f" ({which})" if which else ""
            raise ModelTimedOut(f"{label} did not answer within {whole or timeout:.3g} s{named}")
        concurrent.futures.wait([future], timeout=min(LOOK_S, left))
    return future.result()


_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by process id: a forked child has none of our threads
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the one event loop of this process, in a thread of its own."""
    import asyncio

    with _starting:
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="llm-client", daemon=True).start()
        return _loops[os.getpid()]
