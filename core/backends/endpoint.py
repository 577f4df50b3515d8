"""An address called by GET or with JSON by POST: embedders, rerankers, web search and external pipelines."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.backends.llm import pace, wire
from core.backends.llm.client import run_call
from core.domain.errors import ModelFailed

if TYPE_CHECKING:
    import httpx2

LIMITED = (429, 503)  # statuses of a service that says when to come back
TRIES, TRIES_LIMITED, TRIES_LOST = 5, 10, 3  # if it does not say so; if it limits calls; if it is not there
ENDLESS = 10_000  # tries: the call's deadline comes first
PAUSE_S, LONGEST_S = 0.5, 30.0  # before the second try, and at most
HINTS = {
    401: "refused the key (401)",
    403: "refuses access with this key (403)",
    404: "knows no such address or model (404)",
    413: "finds the texts too long or too many (413)",
    429: "is asked too often or the quota is used up (429)",
}


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response: its status, its body, and the seconds it asks to wait."""

    status: int
    data: bytes
    wait: float | None = None


class Endpoint:
    """One address and its key, for any number of threads; nothing is opened before the first call.

    All calls share the wait that the service asked for.
    """

    def __init__(
        self,
        url: str,
        words: wire.EndpointWords,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
        private: bool = True,
        hints: Mapping[int, str] = HINTS,
    ) -> None:
        """`private`: whether the address may be on this machine or its own network; `hints` explain
        statuses.
        """
        self.url, self.words, self._hints = url, words, hints
        self._key, self._headers, self._private = key, dict(headers or {}), private
        self._client: httpx2.AsyncClient | None = None
        self._until = 0.0  # on time.monotonic(): before it nobody calls

    def once(
        self, timeout: float, cancel: threading.Event, body: Mapping[str, Any] | None = None, query: str = ""
    ) -> bytes:
        """Call within `timeout` seconds, by POST with a `body`, and return the body of a reply of status 200.

        Raises ModelFailed, ModelTimedOut, Cancelled; a failed call is never repeated.
        """
        content = None if body is None else json.dumps(body).encode()
        reply = run_call(self._send(content, query), self.words.label, timeout, cancel)
        if reply.status != 200:
            raise self.refusal(reply)
        return reply.data

    def post(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float,
        cancel: threading.Event,
        once_s: float | None = None,
    ) -> HttpReply:
        """Post `body` within `timeout` seconds in all, each try within `once_s`; temporary failures are tried
        again.

        Raises ModelFailed, ModelTimedOut, Cancelled. A status that is not temporary is returned.
        """
        end = time.monotonic() + timeout
        return run_call(self._tried(body, end, once_s), self.words.label, timeout, cancel)

    def refusal(self, reply: HttpReply) -> ModelFailed:
        """Return the error for a reply other than 200."""
        if 300 <= reply.status < 400:
            return self.words.failed(f"redirects elsewhere ({reply.status}), which is not followed")
        return self.words.failed(
            self._hints.get(reply.status, f"answered with status {reply.status}"), reply.data
        )

    async def _tried(self, body: Mapping[str, Any], end: float, once_s: float | None) -> HttpReply:
        import asyncio

        content = json.dumps(body).encode()
        for attempt in range(ENDLESS):
            await asyncio.sleep(max(0.0, self._until - time.monotonic()))
            wait: float | None = None
            try:
                reply = await asyncio.wait_for(self._send(content), once_s)
                if not wire.passes(reply.status, reply.data):
                    return reply
                problem, wait = self.refusal(reply), reply.wait
                most = TRIES_LIMITED if reply.status == 429 else TRIES
                if wait is not None and reply.status in LIMITED:
                    most = ENDLESS
            except TimeoutError:
                problem, most = self.words.lost(f"did not respond within {once_s:.3g} s (timeout_s)"), TRIES
            except ModelFailed as error:
                problem, most = error, TRIES_LOST
            pause = min(PAUSE_S * 2**attempt, LONGEST_S) * (0.5 + random.random() / 2)
            if wait is not None:
                pause = max(wait, pace.MOMENT_S)
            if attempt + 1 >= most:
                raise problem
            if time.monotonic() + pause >= end:
                raise self.words.failed(f"asks to wait {pause:.3g} s, longer than the call has: {problem}")
            self._until = max(self._until, time.monotonic() + pause)
        raise AssertionError("unreachable")

    async def _send(self, content: bytes | None, query: str = "") -> HttpReply:
        import httpx2

        from core.backends.llm.transport import client, unreachable

        if self._client is None:  # created on the loop's thread
            headers = {"accept": "application/json", "user-agent": "RouteScope"}
            self._client = client(self._key, private=self._private, headers=headers, own=self._headers)
        given: Any = {} if content is None else {"headers": {"content-type": "application/json"}}
        try:
            answer = await self._client.request(
                "GET" if content is None else "POST", self.url + query, content=content, **given
            )
        except httpx2.HTTPError as error:
            raise self.words.lost(unreachable(error, self.words)) from None
        data = bytes(answer.content)
        return HttpReply(
            answer.status_code,
            data,
            None if answer.status_code == 200 else pace.asked_wait(answer.headers, data),
        )
