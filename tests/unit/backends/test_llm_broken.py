"""Endpoints broken in sixteen ways: each is told in one line, in time; who asks for it is asked again."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
ASK = LLMRequest("test/1", (Message("user", "Hi"),), max_tokens=5)
TOKENS = replace(ASK, top_logprobs=2)
NAN = [{"token": "a", "logprob": float("nan"), "top_logprobs": []}]
TOO_MUCH = b" " * (MAX_BYTES + 1)


def said(text: Any = "Hello", **choice: Any) -> bytes:
    """A good answer in the form of both kinds of endpoint, or as `choice` changes it."""
    message = {"role": "assistant", "content": text}
    return http(
        json.dumps({"choices": [{"message": message, "text": text, "finish_reason": "stop"} | choice]})
    )


def reset(_: Loopback, talk: socket.socket, __: bytes) -> None:
    """Half an answer, and the connection is gone."""
    talk.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    talk.sendall(b'8\r\n{"choice\r\n')


KINDS: dict[str, tuple[Reply, LLMRequest, type[ModelFailed], str]] = {
    "429": (http("slow down", status="429 Too Many Requests"), ASK, ModelFailed, "asked too often"),
    "503": (http("loading", status="503 Service Unavailable"), ASK, ModelFailed, "still loading"),
    "HTML": (http("<!DOCTYPE html><p>Sign in", kind="text/html"), ASK, ModelFailed, "web page instead"),
    "null choices": (http('{"choices": null}'), ASK, ModelFailed, "without a choice (choices: null)"),
    "redirect": (
        http("", status="302 Found", more="Location: http://169.254.169.254/\r\n"),
        ASK,
        ModelFailed,
        "redirects elsewhere (302)",
    ),
    "hang": (hold, ASK, ModelTimedOut, "did not answer within"),
    "drip": (drip, ASK, ModelTimedOut, "did not answer within"),
    "huge": (http(TOO_MUCH), ASK, ConnectionLost, "larger than 16 MiB"),
    "refusal": (
        said(None, message={"content": None, "refusal": "I must not"}),
        ASK,
        ModelFailed,
        'refused to answer: "I must not"',
    ),
    "truncated JSON": (http('{"choices": [{"message": {"cont'), ASK, ConnectionLost, "middle of its answer"),
    "wrong content type": (http("%PDF-1.7", kind="application/pdf"), ASK, ModelFailed, "broken JSON"),
    "closed connection": (reset, ASK, ConnectionLost, "ended, or its connection,"),
    "empty body": (http(""), ASK, ModelFailed, "the body is empty"),
    "invalid UTF-8": (http(b'{"choices": "\xff\xfe"}'), ASK, ModelFailed, "broken JSON"),
    "NaN log-probabilities": (said(logprobs={"content": NAN}), TOKENS, ModelFailed, "token probabilities"),
    "wrong schema": (http('{"result": {"output": "Hello"}}'), ASK, ModelFailed, "without a choice"),
}
CALLERS: dict[str, tuple[type[ChatClient], bool]] = {
    "chat": (ChatClient, False),
    "streamed chat": (ChatClient, True),
    "completions": (CompletionsClient, False),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long pauses where an endpoint does not say how long."""
    monkeypatch.setattr(pace, "PAUSE_S", 0.001)
    monkeypatch.setattr(pace, "MOMENT_S", 0.001)


def ask(
    url: str,
    request: LLMRequest = ASK,
    *,
    caller: str = "chat",
    timeout: float = 20.0,
    cancel: threading.Event | None = None,
) -> Any:
    kind, streams = CALLERS[caller]
    made = kind(f"{url}/v1", model="tiny", key=KEY, label="tiny at test")
    written = (lambda _: None) if streams else None
    return made.complete(request, timeout=timeout, cancel=cancel or threading.Event(), written=written)


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_endpoint_is_one_clear_line(kind: str, caller: str) -> None:
    reply, request, error, words = KINDS[kind]
    if kind == "refusal" and caller == "completions":
        words = "answered without text"  # there is no such field there
    began = time.monotonic()
    with loopback(reply) as server, pytest.raises(error) as caught:
        ask(server.url, request, caller=caller, timeout=1.0 if error is ModelTimedOut else 20.0)
    assert time.monotonic() - began < 15  # far below what a call without an end takes
    text = str(caught.value)
    assert text.startswith("tiny at test ")
    assert words in text
    assert "\n" not in text
    assert KEY not in text
    assert len(text) < 400
    again = kind in ("429", "503", "truncated JSON", "closed connection")
    assert len(server.requests) == (1 + pace.AGAIN if again else 1)


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
    row = Row(later(429, "0"), later(503), later(429, "soon"), said("Hello"))
    with loopback(row) as server:
        got = ask(server.url, caller=caller)
    assert (got.text, len(row.asked)) == ("Hello", 4)


@pytest.mark.slow
def test_what_was_asked_to_be_waited_is_waited_and_is_no_time_of_the_call() -> None:
    row = Row(later(429, "1"), said())
    with loopback(row) as server:
        got = ask(server.url)
    assert row.asked[1] - row.asked[0] >= 1.0
    assert got.ms < 1000 * (row.asked[1] - row.asked[0])


@pytest.mark.parametrize(
    "wait", ["60", "1e9", "Fri, 31 Dec 2199 23:59:59 GMT"], ids=["seconds", "many seconds", "a date"]
)
def test_a_wait_beyond_the_deadline_is_told_at_once(wait: str) -> None:
    row = Row(later(429, wait), said())
    with (
        loopback(row) as server,
        pytest.raises(ModelFailed, match=r"asks to wait .* s, longer than the call has"),
    ):
        ask(server.url, timeout=20)
    assert len(row.asked) == 1


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
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("3", 3.0),
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


def streamed(*lines: str, end: bytes) -> Reply:
    """A stream in chunks that ends as `end` says: orderly, or torn off."""
    chunks = [f"data: {line}\n\n".encode() for line in lines]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


PIECE = '{"choices": [{"delta": {"content": "Hel"}, "finish_reason": null}]}'


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (streamed(PIECE, end=b""), "ended, or its connection, during the call"),
        (streamed(PIECE, end=b"0\r\n\r\n"), "ended, or its connection, after 3 characters of its answer"),
        (streamed(PIECE, PIECE[:30], end=b"0\r\n\r\n"), "in the middle of its answer"),
    ],
)
def test_a_server_that_dies_while_it_writes_is_told_as_that(reply: bytes, words: str) -> None:
    with loopback(reply) as server, pytest.raises(ConnectionLost) as caught:
        ask(server.url, caller="streamed chat")
    assert words in str(caught.value)
    assert "broken JSON" not in str(caught.value)


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
