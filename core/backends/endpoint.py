"""An address called by GET or with JSON by POST: embedders, rerankers, web search and external pipelines."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.backends.llm import pace, wire
from core.backends.llm.client import run_call
from core.domain.errors import ModelFailed, ModelTimedOut

if TYPE_CHECKING:
    import httpx2

HINTS = {
    401: "refused the key (401)",
    403: "refuses access with this key (403)",
    404: "knows no such address or model (404)",
    413: "finds the texts too long or too many (413)",
    429: "is asked too often or the quota is used up (429)",
}
HEADERS = {"accept": "application/json", "user-agent": "RouteScope"}
POSTED = {**HEADERS, "content-type": "application/json"}


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
        self._key, self._headers, self._private = key, headers, private
        self._client: httpx2.AsyncClient | None = None
        self._pace = pace.pace(url)

    def once(
        self, timeout: float, cancel: threading.Event, body: Mapping[str, Any] | None = None, query: str = ""
    ) -> bytes:
        """Call within `timeout` seconds, by POST with a `body`, and return the body of a reply of status 200.

        Raises ModelFailed, ModelTimedOut, Cancelled; a failed call is never repeated.
        """
        reply = run_call(self._send(body, query), self.words.label, timeout, cancel)
        if reply.status != 200:
            raise self.refusal(reply)
        return reply.data

    def post(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float,
        cancel: threading.Event,
        once_s: float = math.inf,
    ) -> HttpReply:
        """Post `body` within `timeout` seconds in all, each try within `once_s`; temporary failures are tried
        again.

        Raises ModelFailed, ModelTimedOut, Cancelled. A status that is not temporary is returned.
        """

        def tried(left: float) -> HttpReply:
            try:
                reply = run_call(self._send(body), self.words.label, min(left, once_s), cancel)
            except ModelTimedOut as error:
                if left <= once_s:
                    raise
                raise wire.Passing(f"{error} (timeout_s)") from None
            if wire.passes(reply.status, reply.data):
                raise wire.Passing(self.refusal(reply), reply.wait)
            return reply

        return self._pace.patiently(tried, self.words, timeout, cancel, most_asked=math.inf)

    def refusal(self, reply: HttpReply) -> ModelFailed:
        """Return the error for a reply other than 200."""
        return self.words.refused(reply.status, reply.data, self._hints)

    async def _send(self, body: Mapping[str, Any] | None, query: str = "") -> HttpReply:
        import httpx2

        from core.backends.llm.transport import TooMuch, client, unreachable

        if self._client is None:  # created on the loop's thread
            self._client = client(self._key, private=self._private, own=self._headers)
        given: dict[str, Any] = {"headers": HEADERS}
        if body is not None:
            given = {"headers": POSTED, "content": json.dumps(body).encode()}
        try:
            answer = await self._client.request("GET" if body is None else "POST", self.url + query, **given)
        except TooMuch as error:  # another try would be as large
            raise self.words.failed(str(error)) from None
        except httpx2.HTTPError as error:
            raise self.words.lost(unreachable(error, self.words)) from None
        data = bytes(answer.content)
        wait = None if answer.status_code == 200 else pace.asked_wait(answer.headers, data)
        return HttpReply(answer.status_code, data, wait)
