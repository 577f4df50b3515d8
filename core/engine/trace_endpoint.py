"""An OTLP/HTTP endpoint on this machine alone: `POST /v1/traces` in JSON or protobuf, within limits."""

from __future__ import annotations

import json
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.engine.trace_collector import Collector
from core.store.otlp import from_protobuf

HOST = "127.0.0.1"  # never another: what is sent here is stored unasked
PORT = 4318  # OTLP's own
PATH = "/v1/traces"
MAX_BYTES = 16 * 2**20  # of a request, as it is sent and unpacked
AT_ONCE = 8  # requests
READ_S = 10.0
DIGITS = 15  # of a Content-Length; Python refuses to read thousands
JSON, PROTOBUF = "application/json", "application/x-protobuf"


class Refused(Exception):
    """A request that is not taken: its HTTP status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Endpoint:
    """The server; `port` 0 chooses a free one. Raises Unavailable where the port is taken."""

    def __init__(self, collector: Collector, port: int = PORT) -> None:
        self._stop = threading.Event()
        self._collector = collector

        class Handler(_Handler):
            taken = collector
            slots = threading.BoundedSemaphore(AT_ONCE)

        try:
            self._server = _Server((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            raise Unavailable(f"cannot listen on {HOST}:{port}: {error}; choose another --port") from None
        self.port: int = self._server.server_address[1]

    @property
    def address(self) -> str:
        """Return the URL for sending traces."""
        return f"http://{HOST}:{self.port}{PATH}"

    def serve(self, stop: threading.Event) -> None:
        """Take requests until `stop`; all that came is stored then."""
        serving = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        serving.start()
        try:
            self._collector.run(stop)
        finally:
            self._server.shutdown()
            self._server.server_close()
            serving.join()
        self._collector.store(all_of_them=True)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 32


class _Handler(BaseHTTPRequestHandler):
    taken: ClassVar[Collector]
    slots: ClassVar[threading.BoundedSemaphore]
    timeout = READ_S
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "RouteScope", ""

    def do_POST(self) -> None:
        """Take one request."""
        kind = JSON
        try:
            kind = self._kind()
            if not self.slots.acquire(blocking=False):
                raise Refused(503, f"more than {AT_ONCE} requests at once; send it again later")
            try:
                data = self._body()
                document = self._json(data) if kind == JSON else from_protobuf(data)
                rejected, why = self.taken.add(document)
            finally:
                self.slots.release()
        except Refused as refused:
            self._answer(refused.status, kind, {"message": str(refused)})
            return
        except BadInput as error:
            self._answer(400, kind, {"message": str(error)})
            return
        except RouteScopeError as error:
            self._answer(503, kind, {"message": str(error)})
            return
        partial = (
            {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}} if rejected else {}
        )
        self._answer(200, kind, partial)

    def do_GET(self) -> None:
        """Nothing is to be read here."""
        self._answer(405, JSON, {"message": f"only POST {PATH} is taken"})

    do_PUT = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = do_GET  # noqa: N815 - http.server's names

    def _kind(self) -> str:
        """Return the content type. Raises Refused for requests that no exporter sends, such as those of web
        pages.
        """
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0].strip("[]").lower()
        if host not in (HOST, "localhost", "::1"):
            raise Refused(403, "the request is for another host")
        if self.headers.get("Origin") is not None:
            raise Refused(403, "requests of web pages are not taken")
        if self.path.split("?", 1)[0].rstrip("/") != PATH:
            raise Refused(404, f"only {PATH} is there")
        kind = (self.headers.get("Content-Type") or "").split(";", 1)[0].strip().lower()
        if kind not in (JSON, PROTOBUF):
            raise Refused(415, f"Content-Type {kind or 'missing'!r}; send {JSON} or {PROTOBUF}")
        return kind

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length") or ""
        if self.headers.get("Transfer-Encoding") or not length.isdecimal():
            raise Refused(411, "Content-Length is missing")
        if len(length) > DIGITS or not length.isascii():
            raise Refused(400, f"Content-Length is no number of bytes: {length[:DIGITS]}")
        if int(length) > MAX_BYTES:
            raise Refused(413, f"{int(length):,} bytes; at most {MAX_BYTES:,} in one request")
        try:
            data = self.rfile.read(int(length))
        except TimeoutError:
            raise Refused(408, f"the request did not come within {READ_S:.0f} s") from None
        if len(data) < int(length):
            raise Refused(400, "the request ended before its Content-Length")
        encoding = (self.headers.get("Content-Encoding") or "identity").strip().lower()
        if encoding == "gzip":
            return _unpacked(data)
        if encoding != "identity":
            raise Refused(415, f"Content-Encoding {encoding!r}; send gzip or none")
        return data

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"the request is not JSON: {error}") from None

    def _answer(self, status: int, kind: str, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode() if kind == JSON else _protobuf(status, document)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status != 200:  # what is left of the request is not read
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the collector reports what was stored."""


def _unpacked(data: bytes) -> bytes:
    """Unpack a gzip body up to the allowed size. Raises Refused for a larger or damaged one."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise Refused(400, f"the request is no gzip: {error}") from None
    if len(found) > MAX_BYTES:
        raise Refused(413, f"more than {MAX_BYTES:,} bytes unpacked")
    if not unpacker.eof:
        raise Refused(400, "the gzip of the request ends too early")
    return found


def _protobuf(status: int, document: dict[str, Any]) -> bytes:
    """Encode a response: the protocol's own, or google.rpc.Status, whose field 2 is the message."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    if status == 200:
        answer: bytes = ParseDict(document, ExportTraceServiceResponse()).SerializeToString()
        return answer
    message = str(document.get("message", "")).encode()[:120]
    return b"\x12" + bytes([len(message)]) + message
