"""The HTTP transport under the `openai` client: only the headers a call needs, only so much back."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from functools import cache

import httpx2

from core.backends.llm.client import CONNECT_S

MAX_BYTES = 16 << 20  # of one answer; 4,000 tokens with 20 alternatives each take about 8
HEADERS = ("host", "accept", "content-type", "content-length", "user-agent", "connection")


class TooMuch(httpx2.RemoteProtocolError):
    """The endpoint sends more than any answer can be."""


@cache
def _trusted() -> ssl.SSLContext:
    """Whom TLS believes: reading all their certificates takes longer than a call, so it is done once."""
    return httpx2.create_ssl_context(trust_env=False)


class Guarded(httpx2.AsyncHTTPTransport):
    """Drops the headers that libraries add from the environment or about this machine; adds the key."""

    def __init__(self, key: str, *, keep_alive: bool) -> None:
        super().__init__(
            verify=_trusted(),
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=None if keep_alive else 0),
        )
        self._key = key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send and count."""
        kept = {name: value for name, value in request.headers.items() if name in HEADERS}
        kept["accept-encoding"] = "identity"
        if self._key:
            kept["authorization"] = f"Bearer {self._key}"
        sent = httpx2.Request(
            request.method, request.url, headers=kept, stream=request.stream, extensions=request.extensions
        )
        answer = await super().handle_async_request(sent)
        if isinstance(answer.stream, httpx2.AsyncByteStream):
            answer.stream = _Counted(answer.stream)
        return answer


def client(
    key: str, *, keep_alive: bool = True, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """A client for one endpoint: its own calls have deadlines, so reads have none; it follows nothing."""
    return httpx2.AsyncClient(
        transport=Guarded(key, keep_alive=keep_alive),
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        headers=headers,
        follow_redirects=False,
        trust_env=False,
    )


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for block in self._stream:
            taken += len(block)
            if taken > MAX_BYTES:
                raise TooMuch(f"the answer is larger than {MAX_BYTES >> 20} MiB")
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()
