"""Traces sent to this machine: taken within limits, stored when they are whole, from nowhere else."""

import gzip
import http.client
import json
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from core.domain.errors import BadInput, Unavailable
from core.engine import trace_endpoint
from core.engine.imported import imported, store_traces
from core.engine.trace_endpoint import Collector, TraceEndpoint
from core.store import Store
from core.store.otlp import from_protobuf
from tests.unit.store.test_traces_in import SHOP, otlp, spans_of
from tests.until import until


def as_protobuf(document):
    """The request in protobuf, made by the schema itself."""
    import base64

    document = json.loads(json.dumps(document))
    for span in spans_of(document):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(document, ExportTraceServiceRequest()).SerializeToString()


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "a.sqlite")
    yield made
    made.close()


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def collector(store, now):
    engine = SimpleNamespace(settings=None, store=store, corpus=lambda _name: SHOP)
    lines = []
    made = Collector(lambda traces: store_traces(engine, traces, "shop"), lines.append, lambda: now[0])
    made.lines = lines
    return made


@contextmanager
def served(collector):
    """The endpoint, and how it is asked: (status, JSON or bytes)."""
    endpoint, stop = TraceEndpoint(collector, 0), threading.Event()
    thread = threading.Thread(target=endpoint.serve, args=(stop,))
    thread.start()

    def ask(body, headers=None, path="/v1/traces", method="POST"):
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            data = answer.read()
            json_ = answer.headers["Content-Type"] == "application/json" and data
            return answer.status, json.loads(data) if json_ else data
        finally:
            connection.close()

    try:
        yield ask, endpoint
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("form", ["json", "protobuf", "gzip"])
def test_what_is_sent_becomes_the_runs_of_the_file(store, collector, form):
    body, headers = json.dumps(otlp()).encode(), {}
    if form == "protobuf":
        body, headers = as_protobuf(otlp()), {"Content-Type": "application/x-protobuf"}
    if form == "gzip":
        body, headers = gzip.compress(body, mtime=0), {"Content-Encoding": "gzip"}
    with served(collector) as (ask, _):
        status, answer = ask(body, headers)
        assert status == 200
        assert answer in ({}, b"")
    expected = imported(trace_endpoint.assembled(collected(otlp()), Counter()).traces, SHOP, "shop_rag").runs
    assert {run.id: run for run in expected} == {id: store.load(id) for id in store.ids()}


def collected(document):
    return trace_endpoint.spans_of(document, Counter())


def test_a_trace_is_stored_when_it_is_whole(store, collector, now):
    first, second = otlp(), otlp()
    spans_of(first)[:] = spans_of(first)[1:4]
    spans_of(second)[:] = spans_of(second)[:1]
    collector.add(first)
    now[0] = 10.0
    collector.store()
    assert store.ids() == [], "its root has not come"
    collector.add(second)
    collector.store()
    assert store.ids() == [], "more may come"
    now[0] = 12.5
    collector.store()
    assert len(store.ids()) == 1
    assert "1 runs stored (How do I start a return?)" in collector.lines[0]
    collector.add(first)
    now[0] = 80.0
    collector.store()
    assert len(store.ids()) == 1
    assert "; 1 already there" in collector.lines[1]
    lone = otlp()
    spans_of(lone)[:] = [{**spans_of(lone)[1], "traceId": "ee" * 16}]
    collector.add(lone)
    for seconds, stored in ((59.0, 1), (61.0, 2)):  # it has no root, so it is taken after a while
        now[0] = 80.0 + seconds
        collector.store()
        assert len(store.ids()) == stored


def test_what_cannot_be_stored_is_said(now):
    def refuse(_traces):
        raise BadInput("nothing to make a corpus of")

    lines = []
    made = Collector(refuse, lines.append, lambda: now[0])
    made.add(otlp())
    made.store(all_of_them=True)
    assert lines == ["2 traces not stored: nothing to make a corpus of"]


def test_too_many_spans_that_wait_are_rejected_and_counted(collector, monkeypatch):
    monkeypatch.setattr(trace_endpoint, "MAX_WAITING", 3)
    rejected, why = collector.add(otlp())
    assert (rejected, why) == (2, "2 spans while too many others wait; send them later")
    with served(collector) as (ask, _):
        status, answer = ask(json.dumps(otlp()))
    assert (status, answer["partialSuccess"]["rejectedSpans"]) == (200, "5")


GZIP = {"Content-Encoding": "gzip"}
REFUSED = [
    (b"[" * 99_999, {}, 400, "not JSON"),
    (b"[]", {}, 400, "no resourceSpans"),
    (b"no gzip at all", GZIP, 400, "no gzip"),
    (gzip.compress(bytes(17 * 2**20)), GZIP, 413, "unpacked"),
    (gzip.compress(b"{}")[:-4], GZIP, 400, "too early"),
    (b"{}", {"Content-Encoding": "br"}, 415, "send gzip or none"),
    (b"{}", {"Content-Type": "text/plain"}, 415, "send application/json"),
    (b"{}", {"Origin": "http://evil.example"}, 403, "web pages"),
    (b"{}", {"Host": "evil.example"}, 403, "another host"),
    (b"{}", {"Content-Length": "900000000000000000"}, 413, "at most"),
]


@pytest.mark.trust
def test_what_no_exporter_sends_is_refused(collector):
    with served(collector) as (ask, _):
        for body, headers, status, why in REFUSED:
            got, answer = ask(body, headers)
            assert (got, why in answer["message"]) == (status, True), answer
        assert ask(b"{}", path="/v1/metrics")[0] == 404
        assert ask(None, method="GET")[0] == 405
        assert ask(json.dumps(otlp()))[0] == 200, "the next one is taken"
    assert collector.received == 5


def test_protobuf_that_is_none_is_refused_in_protobuf(collector):
    with served(collector) as (ask, _):
        status, answer = ask(b"\xff\xff\xff", {"Content-Type": "application/x-protobuf"})
    assert (status, answer[:1]) == (400, b"\x12")
    assert b"no OTLP protobuf" in answer
    with pytest.raises(BadInput):
        from_protobuf(b"\x0a\xff")
    rejected = trace_endpoint._protobuf(
        200, {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "full"}}
    )
    assert ExportTraceServiceResponse.FromString(rejected).partial_success.rejected_spans == 2


@pytest.mark.trust
def test_it_listens_on_this_machine_alone(collector):
    with served(collector) as (_, endpoint):
        assert endpoint._socket.getsockname()[0] == "127.0.0.1"
        assert endpoint.address.startswith("http://127.0.0.1:")
        with pytest.raises(Unavailable, match="choose another --port"):
            TraceEndpoint(collector, endpoint.port)


def raw(endpoint, head, *parts, pause=0.0):
    """The answer to a request that is sent byte for byte, b"" if the connection ended without one."""
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=20) as connection:
        answer = b""
        try:
            for part in (head, *parts):
                connection.sendall(part)
                time.sleep(pause)
            while block := connection.recv(1 << 16):
                answer += block
        except (ConnectionError, BrokenPipeError):
            pass
        return answer


START = b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.trust
def test_absurd_headers_are_answered_with_400(collector):
    heads = [
        START + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
        START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        START + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        START + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\0" * 100_000,
        b"POST /v1/traces HTTP/1.1\r\n\r\n",
    ]
    with served(collector) as (ask, endpoint):
        for head in heads:
            assert raw(endpoint, head).startswith(b"HTTP/1.1 400 ")
        assert ask(json.dumps(otlp()))[0] == 200, "the next one is taken"


@pytest.mark.trust
def test_a_body_in_parts_has_the_same_limit(collector, monkeypatch):
    monkeypatch.setattr(trace_endpoint, "MAX_BYTES", 100_000)
    head = START + b"Transfer-Encoding: chunked\r\n\r\n"
    with served(collector) as (_, endpoint):
        body = json.dumps(otlp()).encode()
        assert b" 200 OK" in raw(endpoint, head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        parts = [b"1000\r\n" + b"a" * 0x1000 + b"\r\n"] * 200
        assert raw(endpoint, head, *parts)[:12] in (b"HTTP/1.1 413", b"")
    assert collector.received == 5


@pytest.mark.trust
@pytest.mark.parametrize("where", ["header", "body", "nothing"])
def test_a_request_has_one_time_for_all_of_it(collector, monkeypatch, where):
    monkeypatch.setattr(trace_endpoint, "REQUEST_S", 0.5)
    slow = {
        "header": [b"X: y\r\n"] * 30,
        "body": [b"Content-Length: 100\r\n\r\n", *[b"{"] * 30],
        "nothing": [],
    }
    with served(collector) as (ask, endpoint):
        began = time.monotonic()
        with ThreadPoolExecutor() as pool:
            late = pool.submit(raw, endpoint, START if slow[where] else b"", *slow[where], pause=0.1)
            assert ask(json.dumps(otlp()))[0] == 200, "others are taken meanwhile"
            assert late.result()[:12] in (b"HTTP/1.1 408", b"")
        assert time.monotonic() - began < 10
        assert raw(endpoint, START).startswith(b"HTTP/1.1 408 ")


@pytest.mark.trust
def test_connections_and_requests_at_once_are_limited(collector):
    with served(collector) as (ask, endpoint), ExitStack() as held:
        for _ in range(trace_endpoint.AT_ONCE):
            one = held.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
            one.sendall(START + b"Content-Length: 100\r\n\r\n{")
        until(lambda: endpoint._taking == trace_endpoint.AT_ONCE)
        assert ask(b"{}")[0] == 503
        for _ in range(trace_endpoint.CONNECTIONS):
            held.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
        until(lambda: raw(endpoint, START) == b"")
        assert len(endpoint._server.server_state.connections) <= trace_endpoint.CONNECTIONS
        held.close()
        until(lambda: not endpoint._taking)
        assert ask(json.dumps(otlp()))[0] == 200
