"""An address that takes JSON by POST: for embedding and rerank services. What is temporary is tried again."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from core.backends.llm.client import run_call
from core.backends.llm.wire import EndpointWords, retry_after
from core.domain.errors import ModelFailed

if TYPE_CHECKING:
    import httpx2

AGAIN = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # statuses of what may work a moment later
LIMITED = (429, 503)  # of these, those of a service that says when to come back
TRIES, TRIES_LIMITED, TRIES_LOST = 5, 10, 3  # if it does not say so; if it limits calls; if it is not there
ENDLESS = 10_000  # tries: the call's deadline comes first
PAUSE_S, LONGEST_S = 0.5, 30.0  # before the second try, and at most
SPENT = (b"insufficient_quota", b"billing_hard_limit", b"quota exceeded for the month")
HINTS = {
    401: "refused the key (401)",
    403: "refuses access with this key (403)",
    404: "knows no such address or model (404)",
    413: "finds the texts too long or too many (413)",
    429: "is asked too often or the quota is used up (429)",
}


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response that is not temporary: its status and body."""

    status: int
    data: bytes


class Endpoint:
    """One address and its key, for any number of threads; nothing is opened before the first call.

    All calls share the wait that the service asked for.
    """

    def __init__(
        self,
        url: str,
        words: EndpointWords,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
        private: bool = True,
    ) -> None:
        """`private`: whether the address may be on this machine or its own network."""
        self.url, self.words = url, words
        self._key, self._headers, self._private = key, dict(headers or {}), private
        self._client: httpx2.AsyncClient | None = None
        self._until = 0.0  # on time.monotonic(): before it nobody calls

    def post(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float,
        cancel: threading.Event,
        once_s: float | None = None,
    ) -> HttpReply:
        """Post `body` within `timeout` seconds in all, each try within `once_s`.

        Raises ModelFailed, ModelTimedOut, Cancelled. A status that is not temporary is returned.
        """
        end = time.monotonic() + timeout
        return run_call(self._tried(body, end, once_s), self.words.label, timeout, cancel)

    def refusal(self, reply: HttpReply) -> ModelFailed:
        """Return the error for a reply other than 200."""
        if 300 <= reply.status < 400:
            return self.words.failed(f"redirects elsewhere ({reply.status}), which is not followed")
        return self.words.failed(HINTS.get(reply.status, f"answered with status {reply.status}"), reply.data)

    async def _tried(self, body: Mapping[str, Any], end: float, once_s: float | None) -> HttpReply:
        import asyncio

        content = json.dumps(body).encode()
        for attempt in range(ENDLESS):
            await asyncio.sleep(max(0.0, self._until - time.monotonic()))
            most = TRIES
            asked: float | None = None
            try:
                status, data, asked = await asyncio.wait_for(self._send(content), once_s)
                problem = self.refusal(HttpReply(status, data))
                if status not in AGAIN or any(word in data.lower() for word in SPENT):
                    return HttpReply(status, data)
                most = TRIES_LIMITED if status == 429 else TRIES
                if asked is not None and status in LIMITED:
                    most = ENDLESS
            except TimeoutError:
                problem = self.words.lost(f"did not respond within {once_s:.3g} s (timeout_s)")
            except ModelFailed as error:
                problem, most = error, TRIES_LOST
            pause = min(PAUSE_S * 2**attempt, LONGEST_S) * (0.5 + random.random() / 2)
            if asked is not None:
                pause = max(asked, 0.05)
            if attempt + 1 >= most:
                raise problem
            if time.monotonic() + pause >= end:
                raise self.words.failed(f"asks to wait {pause:.3g} s, longer than the call has: {problem}")
            self._until = max(self._until, time.monotonic() + pause)
        raise problem

    async def _send(self, content: bytes) -> tuple[int, bytes, float | None]:
        import httpx2

        from core.backends.llm.transport import client, unreachable

        if self._client is None:  # made on the loop's thread
            self._client = client(self._key, private=self._private, own=self._headers)
        try:
            answer = await self._client.post(
                self.url, content=content, headers={"content-type": "application/json"}
            )
        except httpx2.HTTPError as error:
            raise self.words.lost(unreachable(error, self.words)) from None
        asked = retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        if (exact := answer.headers.get("retry-after-ms", "")).isdigit():  # OpenAI and Azure
            asked = int(exact) / 1_000
        return answer.status_code, bytes(answer.content), asked
