"""An OTLP/HTTP endpoint on this machine alone: `POST /v1/traces` in JSON or protobuf, within limits."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from core.corpus.passage_matching import describe
from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.engine.imported import ImportedTraces
from core.store.otlp import from_protobuf
from core.store.traces_in import MAX_TRACE, ForeignSpan, ForeignTrace, assembled, in_words, spans_of

QUIET_S = 2.0  # without another span after its root came, a trace is whole: exporters send in batches
PATIENCE_S = 60.0  # a trace whose root does not come is taken as it is
MAX_WAITING = 50_000  # spans that wait for the rest of their traces


@dataclass(slots=True)
class _Growing:
    spans: list[ForeignSpan] = field(default_factory=list)
    first: float = 0.0
    last: float = 0.0

    def whole(self, now: float) -> bool:
        rooted = any(not span.parent for span in self.spans)
        return now - self.first >= PATIENCE_S or (rooted and now - self.last >= QUIET_S)


class Collector:
    """A collector that accepts spans from any thread and passes whole traces to `take`, one call at a time.
    It reports each call to `said` in one line.
    """

    def __init__(
        self,
        take: Callable[[Sequence[ForeignTrace]], ImportedTraces],
        said: Callable[[str], None] = lambda _line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take, self._said, self._clock = take, said, clock
        self._lock = threading.Lock()
        self._growing: dict[str, _Growing] = {}
        self._waiting = 0
        self.received = self.stored = 0

    def add(self, document: Any) -> tuple[int, str]:
        """Add the spans of one OTLP request. Return the number rejected and the reason. Raises BadInput if
        the document is not an OTLP request.
        """
        skipped: Counter[str] = Counter()
        found = spans_of(document, skipped)
        rejected = +skipped
        now = self._clock()
        with self._lock:
            for span in found:
                own = self._growing.get(span.trace)
                if self._waiting >= MAX_WAITING:
                    rejected["spans while too many others wait; send them later"] += 1
                elif own is not None and len(own.spans) > MAX_TRACE:
                    rejected[f"spans of a trace of more than {MAX_TRACE:,}"] += 1
                else:
                    if own is None:
                        own = self._growing[span.trace] = _Growing(first=now)
                    own.spans.append(span)
                    own.last = now
                    self._waiting += 1
                    self.received += 1
        return rejected.total(), in_words(rejected)

    def store(self, *, all_of_them: bool = False) -> None:
        """Store the traces that are whole, or all."""
        now = self._clock()
        with self._lock:
            ids = [id for id, one in self._growing.items() if all_of_them or one.whole(now)]
            spans = [span for id in ids for span in self._growing.pop(id).spans]
            self._waiting -= len(spans)
        if not spans:
            return
        read = assembled(spans, Counter())
        try:
            found = self._take(read.traces)
        except RouteScopeError as error:
            self._said(f"{len(read.traces)} traces not stored: {error}")
            return
        found.skipped += read.skipped
        self.stored += len(found.runs)
        known = f"; {len(found.known)} already there" if found.known else ""
        left = f"; left out or mended: {in_words(found.skipped)}" if found.skipped else ""
        last = found.runs[-1].query.text[:80] if found.runs else ""
        matching = f" ({last}). {describe(found.matches).rstrip('.')}" if found.runs else ""
        self._said(f"{len(found.runs)} runs stored{matching}{known}{left}")

    def run(self, stop: threading.Event, every_s: float = 0.5) -> None:
        """Store traces as they become whole, until `stop`; then all that are there."""
        while not stop.wait(every_s):
            self.store()
        self.store(all_of_them=True)


HOST = "127.0.0.1"  # never another: what is sent here is stored unasked
PORT = 4318  # OTLP's own
PATH = "/v1/traces"
MAX_BYTES = 16 * 2**20  # of a request, as it is sent and unpacked
MAX_HEADER = 16 * 2**10  # bytes
AT_ONCE = 8  # requests
CONNECTIONS = 32
REQUEST_S = 10.0  # from the start of a connection to the end of its only request
JSON, PROTOBUF = "application/json", "application/x-protobuf"
LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TraceEndpoint:
    """The server; `port` 0 chooses a free one. Raises Unavailable if the port is taken."""

    def __init__(self, collector: Collector, port: int = PORT) -> None:
        self._collector = collector
        self._taking = 0
        self._reading = asyncio.Lock()  # one request at a time is parsed, which takes most of the memory
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen(CONNECTIONS)
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise Unavailable(f"cannot listen on {HOST}:{port}: {error}; choose another --port") from None
        self.port: int = self._socket.getsockname()[1]
        limits: dict[str, Any] = {"h11_max_incomplete_event_size": MAX_HEADER, "timeout_graceful_shutdown": 2}
        plain: dict[str, Any] = {"interface": "asgi3", "ws": "none", "lifespan": "off"}
        quiet: dict[str, Any] = {"log_config": None, "log_level": "critical", "access_log": False}
        how = {**plain, **quiet, **limits, "server_header": False}
        config = uvicorn.Config(self._asked, http=_Connection, **how)
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """The address to send traces to."""
        return f"http://{HOST}:{self.port}{PATH}"

    def serve(self, stop: threading.Event) -> None:
        """Take requests until `stop`, then store all traces that came."""
        serving = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        serving.start()
        try:
            self._collector.run(stop)
        finally:
            self._server.should_exit = True
            serving.join()
            self._socket.close()
        self._collector.store(all_of_them=True)

    async def _asked(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, kind = Request(scope, receive), JSON
        try:
            kind = _kind(request)
            if self._taking >= AT_ONCE:
                raise HTTPException(503, f"more than {AT_ONCE} requests at once; send it again later")
            self._taking += 1
            try:
                data = await _body(request)
                async with self._reading:
                    rejected, why = await run_in_threadpool(self._take, kind, data, _encoding(request))
            finally:
                self._taking -= 1
            partial = {"rejectedSpans": str(rejected), "errorMessage": why}
            response = _response(200, kind, {"partialSuccess": partial} if rejected else {})
        except ClientDisconnect:
            return
        except HTTPException as error:
            response = _response(error.status_code, kind, {"message": error.detail})
        except RouteScopeError as error:
            response = _response(400 if isinstance(error, BadInput) else 503, kind, {"message": str(error)})
        await response(scope, receive, send)

    def _take(self, kind: str, data: bytes, encoding: str) -> tuple[int, str]:
        data = _unpacked(data) if encoding == "gzip" else data
        if kind == PROTOBUF:
            return self._collector.add(from_protobuf(data))
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the request is not JSON: {error}") from None
        return self._collector.add(document)


class _Connection(H11Protocol):
    """A connection that ends unless its request arrives in time: uvicorn only limits idle connections."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(REQUEST_S, self._end)

    def _end(self) -> None:
        arrived = self.cycle is not None and not self.cycle.more_body
        if not arrived and not self.transport.is_closing():
            self.transport.write(LATE)
            self.transport.close()


def _kind(request: Request) -> str:
    """Return the content type. Raises HTTPException for what no exporter sends, as a browser's page."""
    if request.method != "POST":
        raise HTTPException(405, f"only POST {PATH} is taken")
    host = request.headers.get("host", "").rsplit(":", 1)[0].strip("[]").lower()
    if host not in (HOST, "localhost", "::1"):
        raise HTTPException(403, "the request is for another host")
    if "origin" in request.headers:
        raise HTTPException(403, "requests of web pages are not taken")
    if request.scope["path"].rstrip("/") != PATH:
        raise HTTPException(404, f"only {PATH} is there")
    kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if kind not in (JSON, PROTOBUF):
        raise HTTPException(415, f"Content-Type {kind or 'missing'!r}; send {JSON} or {PROTOBUF}")
    if (encoding := _encoding(request)) not in ("identity", "gzip"):
        raise HTTPException(415, f"Content-Encoding {encoding!r}; send gzip or none")
    return kind


def _encoding(request: Request) -> str:
    return request.headers.get("content-encoding", "identity").strip().lower()


async def _body(request: Request) -> bytes:
    """Return the body as it was sent; HTTPException if it is too large, which its length may already say."""
    length = int(request.headers.get("content-length", "0"))
    body = bytearray()
    if length <= MAX_BYTES:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                break
    if max(length, len(body)) > MAX_BYTES:
        raise HTTPException(413, f"{max(length, len(body)):,} bytes; at most {MAX_BYTES:,} in one request")
    return bytes(body)


def _response(status: int, kind: str, document: dict[str, Any]) -> Response:
    body = json.dumps(document).encode() if kind == JSON else _protobuf(status, document)
    return Response(body, status, {"Connection": "close"}, kind)


def _unpacked(data: bytes) -> bytes:
    """Unpack a gzip body up to the allowed size. Raises HTTPException for a larger or damaged one."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise HTTPException(400, f"the request is no gzip: {error}") from None
    if len(found) > MAX_BYTES:
        raise HTTPException(413, f"more than {MAX_BYTES:,} bytes unpacked")
    if not unpacker.eof:
        raise HTTPException(400, "the gzip of the request ends too early")
    return found


def _protobuf(status: int, document: dict[str, Any]) -> bytes:
    """Encode a response: the protocol's own, or google.rpc.Status, whose field 2 is the message."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    if status == 200:
        found: bytes = ParseDict(document, ExportTraceServiceResponse()).SerializeToString()
        return found
    message = str(document.get("message", "")).encode()[:120]
    return b"\x12" + bytes([len(message)]) + message
