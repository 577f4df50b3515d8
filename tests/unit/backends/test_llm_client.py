"""Clients against servers that misbehave in every way seen in the wild: each is told in one line, in time,
without the key; who asks for it is asked again.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openai
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.llm import pace
from core.backends.llm.client import ChatClient
from core.backends.llm.completions import CompletionsClient
from core.backends.llm.launch import OFF, ServerState
from core.backends.llm.model import EmbeddedLLM
from core.backends.llm.pace import retry_after
from core.backends.llm.transport import MAX_BYTES
from core.backends.llm.wire import ConnectionLost
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut
from core.domain.settings import Settings
from tests.loopback import Loopback, Reply, drip, hold, http, loopback

KEY = "sk-very-secret-0123"
ASK = LLMRequest("test/1", (Message("system", "Be brief."), Message("user", "Hi ✓")), max_tokens=5, seed=3)
GOOD: dict[str, Any] = {
    "model": "tiny-2",
    "choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
AGAIN = (
    "asked too often",
    "loading",
    "out of memory",
    "status 500",
    "ended, or its",
    "in the middle of its answer",
)
CALLERS: dict[str, type[ChatClient]] = {
    "chat": ChatClient,
    "streamed chat": ChatClient,
    "completions": CompletionsClient,
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long pauses where an endpoint does not say how long."""
    monkeypatch.setattr(pace, "PAUSE_S", 0.001)
    monkeypatch.setattr(pace, "MOMENT_S", 0.001)


def client(url: str, **more: Any) -> ChatClient:
    return ChatClient(f"{url}/v1", model="tiny", key=KEY, label="tiny at test", **more)


def ask(
    url: str,
    request: LLMRequest = ASK,
    *,
    caller: str = "chat",
    timeout: float = 20.0,
    cancel: threading.Event | None = None,
    written: Any = None,
) -> Any:
    made = CALLERS[caller](f"{url}/v1", model="tiny", key=KEY, label="tiny at test")
    written = written or ((lambda _: None) if caller == "streamed chat" else None)
    return made.complete(request, timeout=timeout, cancel=cancel or threading.Event(), written=written)


def answer(text: Any = "Hello", **choice: Any) -> bytes:
    """A good answer in the form of both kinds of endpoint, or as `choice` changes it."""
    message = {"role": "assistant", "content": text}
    first = {"finish_reason": "stop", "message": message, "text": text} | choice
    return http(json.dumps(GOOD | {"choices": [first]}))


def sent(server: Loopback, at: int = 0) -> Any:
    """The body of a request."""
    return json.loads(server.requests[at].partition(b"\r\n\r\n")[2])


def failure(
    reply: Reply, request: LLMRequest = ASK, kind: type[ModelFailed] = ModelFailed, **more: Any
) -> str:
    """The one line that a reply's fault is told in."""
    with loopback(reply) as server, pytest.raises(kind) as caught:
        ask(server.url, request, **more)
    text = str(caught.value)
    assert text.startswith("tiny at test ")
    assert KEY not in text
    assert len(text) < 400
    assert text.isprintable()
    again = any(words in text for words in AGAIN) and "longer than the call has" not in text
    assert len(server.requests) == (1 + pace.AGAIN if again else 1)
    return text


def test_sends_the_request_and_reads_the_answer() -> None:
    wanted = replace(ASK, top_logprobs=2, schema=SCHEMA, stop=("END",), temperature=0.5)
    top = [{"token": "{", "logprob": -0.1}, {"token": " {", "logprob": -3}]
    logprobs = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": top}]}
    with loopback(answer('{"a": 1}', logprobs=logprobs)) as server:
        got = ask(server.url, wanted)
    assert server.requests[0].startswith(b"POST /v1/chat/completions ")
    assert sent(server) == {
        "model": "tiny",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi ✓"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
    }
    assert (got.text, got.model, got.finish, got.source) == ('{"a": 1}', "tiny-2", "stop", "live")
    assert (got.prompt_tokens, got.completion_tokens, got.cached_tokens) == (9, 1, 4)
    assert got.logprobs[0].top == (("{", -0.1), (" {", -3.0))
    assert got.created.endswith("+00:00")


@pytest.mark.parametrize("embedded", [True, False])
def test_only_graded_calls_of_the_embedded_server_reuse_its_prompt_cache(embedded: bool) -> None:
    logprobs = {"content": [{"token": "a", "logprob": -1, "top_logprobs": []}]}
    with loopback(answer("a", logprobs=logprobs)) as server:
        for request in (ASK, replace(ASK, top_logprobs=5)):
            client(server.url, embedded=embedded).complete(request, timeout=5, cancel=threading.Event())
    caches = [sent(server, at).get("cache_prompt") for at in range(2)]
    assert caches == ([False, True] if embedded else [None, None])


def reset(_: Loopback, talk: socket.socket, __: bytes) -> None:
    """Half an answer, and the connection is gone."""
    talk.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    talk.sendall(b'8\r\n{"choice\r\n')


ELSEWHERE = http("", status="302 Found", more="Location: http://169.254.169.254/\r\n")
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"
BROKEN: list[tuple[Reply, str]] = [
    (http("slow down", status="429 Too Many Requests"), "asked too often"),
    (http("loading", status="503 Service Unavailable"), "still loading"),
    (http('{"error": "no"}', status="401 Unauthorized"), "refused the API key (401)"),
    (http("denied", status="403 Forbidden"), "403"),
    (http("no such model", status="404 Not Found"), "404"),
    (http("x" * 5000, status="400 Bad Request"), "xxx..."),
    (ELSEWHERE, "redirects elsewhere (302)"),
    (http("no", status="299 Such"), "broken JSON"),
    (http("no", status="300 Such"), "redirects"),
    (http("no", status="399 Such"), "redirects"),
    (http("no", status="400 Such"), "status 400"),
    (http("<!DOCTYPE html><p>Sign in", kind="text/html"), "web page instead"),
    (http("%PDF-1.7", kind="application/pdf"), "broken JSON"),
    (http(""), "the body is empty"),
    (http(b'{"choices": "\xff\xfe"}'), "broken JSON"),
    (http("[" * 100_000), "broken JSON"),
    (http('"fine"'), "not an object"),
    (http('{"result": {"output": "Hello"}}'), "without a choice"),
    (http('{"choices": null}'), "without a choice (choices: null)"),
    (http('{"error": {"message": "model is loading"}}'), "model is loading"),
    (http('{"choices": [{"message": null}]}'), "without text"),
    (answer(None), "without text"),
    (answer(" \n"), "empty text"),
]
LOST: list[tuple[Reply, str]] = [
    (http(b" " * (MAX_BYTES + 1)), "larger than 16 MiB"),
    (http('{"choices": [{"mess'), "in the middle of its answer (19 bytes came)"),
    (reset, "ended, or its connection,"),
    (SHORT, "ended, or its connection, during the call"),
    (b"", "ended, or its connection, during the call"),
    (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "gave no answer that can be read"),
]
LATE: list[tuple[Reply, str]] = [(hold, "did not answer within"), (drip, "did not answer within")]
FAULTS = [(ModelFailed, *row) for row in BROKEN] + [(ConnectionLost, *row) for row in LOST]


@pytest.mark.trust
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("error", "reply", "words"),
    [*FAULTS, *((ModelTimedOut, *row) for row in LATE)],
    ids=[f"{words} {at}" for at, (_, words) in enumerate(BROKEN + LOST + LATE)],
)
def test_a_broken_endpoint_is_one_clear_line(error: Any, reply: Reply, words: str, caller: str) -> None:
    began = time.monotonic()
    text = failure(reply, kind=error, caller=caller, timeout=0.5 if error is ModelTimedOut else 20.0)
    assert words in text
    assert time.monotonic() - began < 15  # far below what a call without an end takes


@pytest.mark.parametrize("logprobs", [[{"token": "x"}], [{"token": "a", "logprob": float("nan")}]])
def test_probabilities_of_another_form_are_a_failure(logprobs: Any) -> None:
    reply = answer(logprobs={"content": logprobs})
    assert "token probabilities" in failure(reply, replace(ASK, top_logprobs=5))


@pytest.mark.trust
def test_the_key_and_control_characters_of_an_error_page_are_not_repeated() -> None:
    text = failure(http(f"bad key {KEY}\x1b[31m \u202eevil\x00 <b>", status="401 Unauthorized"))
    assert "bad key [key]" in text
    assert "\\u001b" in text
    assert "\\u202e" in text
    cut = failure(http("y" * 150 + KEY, status="500 Internal Server Error"))
    assert KEY[:8] not in cut, "an excerpt would cut it in two"
    assert 'refused to answer: "I must not"' in failure(answer(None, message={"refusal": "I must not"}))


def test_redirects_are_not_followed() -> None:
    with loopback(answer()) as elsewhere:
        failure(http("", status="307 Temporary Redirect", more=f"Location: {elsewhere.url}/v1\r\n"))
        assert elsewhere.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("reply", [drip, hold])
def test_the_deadline_is_total_and_closes_the_connection(reply: Any) -> None:
    with loopback(reply) as server:
        client_ = client(server.url)
        with pytest.raises(ModelTimedOut):  # imports are not what is measured
            client_.complete(ASK, timeout=0.05, cancel=threading.Event())
        began = time.monotonic()
        with pytest.raises(ModelTimedOut, match=r"within 0\.3 s"):
            client_.complete(ASK, timeout=0.3, cancel=threading.Event())
        assert time.monotonic() - began > 0.29  # a reply that never ends is ended by nothing else
        assert server.hung_up.wait(60)


def test_cancel_ends_a_call_at_once_closes_its_connection_and_sends_no_other() -> None:
    cancel = threading.Event()

    def hold_and_cancel(server: Any, talk: Any, sent: bytes) -> None:
        cancel.set()
        hold(server, talk, sent)

    with loopback(hold_and_cancel) as server:
        for _ in range(2):
            with pytest.raises(Cancelled):
                ask(server.url, cancel=cancel, timeout=3600)
        assert server.hung_up.wait(60)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (openai.APITimeoutError(request=None), "tiny at test took no connection in 5 s"),
        (
            openai.APIConnectionError(message="gone", request=None),
            r'gave no answer that can be read \(APIConnectionError: "gone"\)',
        ),
        (openai.OpenAIError("odd"), r'tiny at test could not be called \(OpenAIError\): "odd"'),
    ],
)
def test_what_the_client_raises_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    async def create(**_: Any) -> Any:
        raise error

    lost = client("http://localhost:9")
    monkeypatch.setattr(lost, "_create", lambda _: create)
    with pytest.raises(ModelFailed, match=said) as caught:
        lost.complete(ASK, timeout=60, cancel=threading.Event())
    assert isinstance(caught.value, ConnectionLost) == isinstance(error, openai.APIConnectionError)


def test_nobody_listening() -> None:
    with loopback(b"") as server:
        pass
    with pytest.raises(ConnectionLost, match="tiny at test cannot be reached"):
        ask(server.url)


@pytest.mark.trust
def test_only_the_configured_key_and_no_ambient_header_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "ambient")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer ambient\nX-Other: ambient")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with loopback(answer()) as server:
        for key in (KEY, ""):
            made = ChatClient(f"{server.url}/v1", model="m", key=key, label="m")
            made.complete(ASK, timeout=5, cancel=threading.Event())
    first, second = (request.split(b"\r\n\r\n")[0].decode().lower() for request in server.requests)
    assert f"authorization: bearer {KEY}" in first
    assert "authorization" not in second
    assert "ambient" not in first + second
    assert "x-stainless" not in first + second


def test_many_threads_share_one_client() -> None:
    def echo(_: Any, talk: Any, request: bytes) -> None:
        asked = json.loads(request.split(b"\r\n\r\n", 1)[1])["messages"][0]["content"]
        talk.sendall(answer(asked))

    with loopback(echo) as server, ThreadPoolExecutor(8) as pool:
        shared = client(server.url)
        asks = [replace(ASK, messages=(Message("user", f"q{n}"),)) for n in range(40)]
        got = pool.map(lambda r: shared.complete(r, timeout=10, cancel=threading.Event()).text, asks)
        assert list(got) == [f"q{n}" for n in range(40)]


# --- asked again


class Row:
    """Answers one after another, and when each was asked for."""

    def __init__(self, *replies: bytes) -> None:
        self._left = list(replies)
        self.asked: list[float] = []

    def __call__(self, _: Loopback, talk: socket.socket, __: bytes) -> None:
        self.asked.append(time.monotonic())
        talk.sendall(self._left.pop(0))


def later(status: int = 429, wait: str | None = None) -> bytes:
    return http("later", status=f"{status} Later", more="" if wait is None else f"Retry-After: {wait}\r\n")


@pytest.mark.trust
@pytest.mark.parametrize("caller", CALLERS)
def test_who_asks_to_be_asked_again_is(caller: str) -> None:
    row = Row(later(429, "0"), later(503), later(429, "soon"), answer("Hello"))
    with loopback(row) as server:
        got = ask(server.url, caller=caller)
    assert (got.text, len(row.asked)) == ("Hello", 4)


@pytest.mark.slow
def test_what_was_asked_to_be_waited_is_waited_and_is_no_time_of_the_call() -> None:
    def slow(server: Loopback, talk: socket.socket, request: bytes) -> None:
        time.sleep(0.05 if row.asked else 0)  # the endpoint's work
        row(server, talk, request)

    row = Row(later(429, "1"), answer())
    with loopback(slow) as server:
        got = ask(server.url)
    assert row.asked[1] - row.asked[0] >= 1.0
    assert 50 <= got.ms < 1000 * (row.asked[1] - row.asked[0])


@pytest.mark.parametrize("wait", ["60", "1e9", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_a_wait_beyond_the_deadline_is_told_at_once(wait: str) -> None:
    assert "longer than the call has" in failure(later(429, wait), timeout=20)


def test_waiting_stops_when_it_is_told_to() -> None:
    cancel = threading.Event()

    def reply(_: Loopback, talk: socket.socket, __: bytes) -> None:
        talk.sendall(later(429, "30"))
        threading.Timer(0.2, cancel.set).start()

    began = time.monotonic()
    with loopback(reply) as server, pytest.raises(Cancelled):
        ask(server.url, timeout=60, cancel=cancel)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("2.5", 2.5),
        ("-4", 0.0),
        ("Sun, 22 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 22 Nov 2026 11:00:00 GMT", 0.0),
        ("Sunday, 22-Nov-26 12:01:00 GMT", 60.0),
        ("Sun Nov 22 12:00:01 2026", 1.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, datetime(2026, 11, 22, 12, tzinfo=UTC)) == seconds


class Dying:
    """An embedded server whose process ends in the middle of each call."""

    name = "tiny"

    def __init__(self, url: str) -> None:
        self.started = 0
        self._url = url

    def ready(self, **_: Any) -> ServerState:
        self.started += 1
        return ServerState("ready", pid=self.started, url=self._url, key="k" * 12)

    def state(self) -> ServerState:
        return OFF


def test_an_embedded_server_that_dies_is_started_once_more(tmp_path: Path) -> None:
    model = tmp_path / "tiny.gguf"
    model.write_bytes(b"GGUF")
    llm = EmbeddedLLM(Settings(home=tmp_path, models_dir=tmp_path, llm=str(model)))
    with loopback(reset) as server:
        llm.server = dying = Dying(server.url)  # type: ignore[assignment]
        with pytest.raises(ConnectionLost):
            llm.complete(ASK, timeout=20, cancel=threading.Event())
    assert dying.started == len(server.requests) == 2


# --- streaming


def events(*pieces: Any, end: str = "data: [DONE]\n\n") -> bytes:
    lines = "".join(f"data: {piece if isinstance(piece, str) else json.dumps(piece)}\n\n" for piece in pieces)
    return http(lines + end, kind="text/event-stream")


def torn(*pieces: Any, end: bytes) -> bytes:
    """A stream in chunks that ends as `end` says: orderly, or torn off."""
    chunks = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n".encode() for one in pieces]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


def piece(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"model": "tiny-2", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
ODD: list[Any] = [
    {"choices": "x"},
    {"choices": [3]},
    {"choices": [{"delta": ["x"]}]},
    {"choices": [{}]},
    piece(""),
    {"choices": [{"delta": {"content": 3}}], "usage": None, "model": ""},
]


def streamed(reply: bytes, request: LLMRequest = ASK) -> tuple[Any, list[str], Any]:
    seen: list[str] = []
    with loopback(reply) as server:
        got = ask(server.url, request, written=seen.append)
    return got, seen, sent(server)


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (events(piece(""), piece("Hel"), piece("lo"), piece(finish="stop"), USAGE), "stop"),
        (events(piece("Hel"), USAGE, *ODD, piece("lo", "length"), piece(finish="")), "length"),
        (
            http(
                'event: x\nid: {"error": 1}\n: {"error": 2}\ndata:\n\nretry: 7\n\n'
                + "".join(
                    f"data: {json.dumps(one)}\n\n" for one in (piece("Hel"), piece("lo", "stop"), USAGE)
                )
                + "data: [DONE]\n\n",
                kind="text/event-stream; charset=utf-8",
            ),
            "stop",
        ),
    ],
    ids=["plain", "pieces of an unusual form", "lines that are no data"],
)
def test_a_streamed_answer_is_the_same_as_a_whole_one(reply: bytes, finish: str) -> None:
    got, seen, body = streamed(reply)
    assert (got.text, got.finish, got.model) == ("Hello", finish, "tiny-2")
    assert (got.prompt_tokens, got.completion_tokens) == (9, 2)
    assert seen == ["Hel", "Hello"]
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


def test_what_is_not_streamed_is_read_all_the_same() -> None:
    assert streamed(answer("Hello"))[0].text == "Hello"
    _, seen, body = streamed(answer('{"a": 1}'), replace(ASK, schema=SCHEMA))
    assert "stream" not in body
    assert seen == []


REFUSED = [{"choices": [{"delta": {"refusal": text}}]} for text in ("I must ", "not do that")]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (events(piece("Hel"), {"error": {"message": "out of memory"}}), "out of memory"),
        (events(piece("Hel"), "{broken}"), "broken JSON"),
        (events(piece(finish="stop")), "without text"),
        (events(), "without a choice"),
        (events("7"), "not an object"),
        (events(*REFUSED, piece(finish="stop")), 'refused to answer: "I must not do that"'),
        (torn(piece("Hel"), end=b""), "ended, or its connection, during the call"),
        (torn(piece("Hel"), end=b"0\r\n\r\n"), "ended, or its connection, after 3 characters of its answer"),
        (torn(piece("Hel"), '{"choices": [{', end=b"0\r\n\r\n"), "in the middle of its answer"),
    ],
)
def test_a_broken_stream_is_one_clear_line(reply: bytes, words: str) -> None:
    lost = "ended" in words or "middle" in words
    assert words in failure(reply, kind=ConnectionLost if lost else ModelFailed, caller="streamed chat")
