"""The HTTP transport under every client of an endpoint: which addresses, which headers, how much back."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from core.backends.llm.wire import CONNECT_S, GONE, NOT_CALLED, EndpointWords
from core.domain import reach

MAX_BYTES = 16 << 20  # of one response, decoded; 4,000 tokens with 20 alternatives each take about 8
BLOCK = 1 << 16  # bytes decoded at a time
PACKED = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}  # wbits
# What these log as "debug" is what an endpoint said, headers and all, before the keys were taken out.
for _name in ("httpcore2", "openai"):
    logging.getLogger(_name).setLevel(logging.INFO)
HEADERS = ("host", "accept", "content-type", "content-length", "user-agent", "connection")


class TooMuch(httpx2.RemoteProtocolError):
    """The endpoint sends more than any answer can be."""


class NotCalled(httpcore2.ConnectError):
    """The address of the endpoint is not one that is called."""


@cache
def _trusted() -> ssl.SSLContext:
    """Whom TLS believes: those of SSL_CERT_FILE or SSL_CERT_DIR, else the public authorities. Reading
    all their certificates takes longer than a call, so it is done once.
    """
    return httpx2.create_ssl_context(trust_env=True)


def proxy_of(url: str) -> str | None:
    """Return the proxy for a URL from the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY), never
    for this machine itself.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    if reach.loopback(host) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the very addresses it has checked: a name that leads elsewhere when it is looked up again
    gains nothing. TLS and the Host header keep the name.
    """

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that accepts within `timeout` seconds in all."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            async with asyncio.timeout(timeout):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            if why := reach.named(host, private=self._private):
                raise reach.AddressRefused(why)
            addresses = reach.checked(host, (str(one[4][0]) for one in found), private=self._private)
        except reach.AddressRefused as refused:
            raise NotCalled(str(refused)) from None
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not found in {timeout:g} s") from None
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from None
        problem: Exception = httpcore2.ConnectError(f"{host} has no address")
        for at, address in enumerate(addresses):
            left = None if end is None else max(0.0, end - time.monotonic()) / (len(addresses) - at)
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout=left, local_address=local_address, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def sleep(self, seconds: float) -> None:
        """Between attempts."""
        await self._backend.sleep(seconds)


class Guarded(httpx2.AsyncHTTPTransport):
    """Drops the headers that libraries add from the environment or about this machine; adds the key and
    `own`, the headers that an endpoint wants.
    """

    def __init__(
        self, key: str, *, keep_alive: bool, private: bool, own: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(verify=_trusted(), trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_trusted(),
            max_keepalive_connections=None if keep_alive else 0,
            keepalive_expiry=5.0,
            network_backend=CheckedBackend(private=private),
        )
        self._private, self._proxied = private, dict[str, httpx2.AsyncHTTPTransport]()
        self._key = key
        self._own = {name.lower(): value for name, value in (own or {}).items()}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send and count."""
        kept = {name: value for name, value in request.headers.items() if name in HEADERS}
        kept["accept-encoding"] = "identity"
        if self._key:
            kept["authorization"] = f"Bearer {self._key}"
        kept |= self._own
        sent = httpx2.Request(
            request.method, request.url, headers=kept, stream=request.stream, extensions=request.extensions
        )
        proxy = proxy_of(str(request.url))
        if proxy is None:
            answer = await super().handle_async_request(sent)
        else:  # it looks the name up: only the name is checked here
            if why := reach.named(request.url.host, private=self._private):
                raise httpx2.ConnectError(why) from NotCalled(why)
            if proxy not in self._proxied:
                self._proxied[proxy] = httpx2.AsyncHTTPTransport(
                    verify=_trusted(), trust_env=False, proxy=proxy
                )
            answer = await self._proxied[proxy].handle_async_request(sent)
        encoding = answer.headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", *PACKED):
            await answer.aclose()
            raise httpx2.DecodingError(f"the response has the content encoding {encoding[:40]!r}")
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        answer.stream = _Limited(answer.stream, PACKED.get(encoding))
        return answer


def client(
    key: str,
    *,
    private: bool,
    keep_alive: bool = True,
    own: Mapping[str, str] | None = None,
) -> httpx2.AsyncClient:
    """Make a client for one endpoint. Reads have no deadline, as `run_call` gives each call one; redirects
    are not followed.

    `private`: whether the endpoint may be on this machine or its own network. `own`: headers that this
    endpoint wants besides those that every request has.
    """
    return httpx2.AsyncClient(
        transport=Guarded(key, keep_alive=keep_alive, private=private, own=own),
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        follow_redirects=False,
        trust_env=False,
    )


def unreachable(error: BaseException, words: EndpointWords) -> str:
    """Describe an endpoint that could not be called because of `error`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NotCalled):
            return f"{NOT_CALLED}: {words.clean(str(cause))}"
        cause = cause.__cause__
    why = f"{type(error).__name__}: {words.excerpt(str(error))}"
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"cannot be reached ({why})"
    gone = isinstance(error, httpx2.ReadError | httpx2.WriteError) or re.search(
        "closed|disconnected", str(error)
    )
    return f"{GONE} during the call ({why})" if gone else f"gave no answer that can be read ({why})"


class _Limited(httpx2.AsyncByteStream):
    """A response's body, decoded. Raises TooMuch beyond MAX_BYTES, whether sent or decoded."""

    def __init__(self, stream: httpx2.AsyncByteStream, wbits: int | None) -> None:
        self._stream = stream
        self._decoder = None if wbits is None else zlib.decompressobj(wbits)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        sent = decoded = 0
        async for block in self._stream:
            sent += len(block)
            for piece in self._pieces(block):
                decoded += len(piece)
                if max(sent, decoded) > MAX_BYTES:
                    raise TooMuch(f"the answer is larger than {MAX_BYTES >> 20} MiB")
                yield piece
        if self._decoder is not None:
            yield self._decoder.flush()  # the rest of the last repetition: 258 bytes at most

    def _pieces(self, block: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            yield block
            return
        while block:
            try:
                piece = self._decoder.decompress(block, BLOCK)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from None
            block = self._decoder.unconsumed_tail
            yield piece  # may be empty: what was sent is counted all the same

    async def aclose(self) -> None:
        await self._stream.aclose()
