"""The client against servers that misbehave in every way that was seen in the wild."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import openai
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.llm import pace
from core.backends.llm.client import ChatClient
from core.backends.llm.transport import MAX_BYTES
from core.backends.llm.wire import ConnectionLost
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut
from tests.loopback import drip, hold, http, loopback

KEY = "sk-very-secret-0123"
ASK = LLMRequest("test/1", (Message("system", "Be brief."), Message("user", "Hi ✓")), max_tokens=5, seed=3)
GOOD: dict[str, Any] = {
    "model": "tiny-2",
    "choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long pauses where an endpoint does not say how long."""
    monkeypatch.setattr(pace, "PAUSE_S", 0.001)
    monkeypatch.setattr(pace, "MOMENT_S", 0.001)


def client(url: str, **more: Any) -> ChatClient:
    return ChatClient(f"{url}/v1", model="tiny", key=KEY, label="tiny at test", **more)


def ask(
    url: str, request: LLMRequest = ASK, timeout: float = 5.0, cancel: threading.Event | None = None
) -> Any:
    return client(url).complete(request, timeout=timeout, cancel=cancel or threading.Event())


def answer(content: Any = "Hello", **choice: Any) -> bytes:
    first = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}} | choice
    return http(json.dumps(GOOD | {"choices": [first]}))


def failure(reply: bytes, request: LLMRequest = ASK) -> str:
    with loopback(reply) as server, pytest.raises(ModelFailed) as caught:
        ask(server.url, request)
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in text
    assert len(text) < 400
    return text


def test_sends_the_request_and_reads_the_answer() -> None:
    wanted = replace(ASK, top_logprobs=2, schema=SCHEMA, stop=("END",), temperature=0.5)
    top = [{"token": "{", "logprob": -0.1}, {"token": " {", "logprob": -3}]
    logprobs = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": top}]}
    with loopback(answer('{"a": 1}', logprobs=logprobs)) as server:
        got = ask(server.url, wanted)
    head, body = server.requests[0].split(b"\r\n\r\n", 1)
    assert head.startswith(b"POST /v1/chat/completions ")
    assert json.loads(body) == {
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
    assert 0 < got.ms < 5000
    assert got.created.endswith("+00:00")


def test_a_cut_answer_says_so() -> None:
    with loopback(http(json.dumps(GOOD))) as server:
        assert ask(server.url).finish == "length"


@pytest.mark.parametrize("embedded", [True, False])
def test_only_graded_calls_of_the_embedded_server_reuse_its_prompt_cache(embedded: bool) -> None:
    logprobs = {"content": [{"token": "a", "logprob": -1, "top_logprobs": []}]}
    with loopback(answer("a", logprobs=logprobs)) as server:
        for request in (ASK, replace(ASK, top_logprobs=5)):
            client(server.url, embedded=embedded).complete(request, timeout=5, cancel=threading.Event())
    sent = [json.loads(request.split(b"\r\n\r\n", 1)[1]).get("cache_prompt") for request in server.requests]
    assert sent == ([False, True] if embedded else [None, None])


@pytest.mark.trust
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (http("<!DOCTYPE html><h1>Login</h1>", kind="text/html"), "web page"),
        (http("  <HTML><script>alert(1)</script>"), "web page"),
        (http('{"choices": [{"mess'), "in the middle of its answer (19 bytes came)"),
        (http(""), "the body is empty"),
        (http(b"\xff\xfe\x00"), "broken JSON"),
        (http("[" * 100_000), "broken JSON"),
        (http('"fine"'), "not an object"),
        (http("{}"), "without a choice"),
        (http('{"choices": null}'), "without a choice"),
        (http('{"choices": []}'), "without a choice"),
        (http('{"choices": [null]}'), "without a choice"),
        (http('{"choices": [{"message": null}]}'), "without text"),
        (http('{"error": {"message": "model is loading"}}'), "model is loading"),
        (answer(None), "without text"),
        (answer([{"type": "image"}]), "without text"),
        (answer(" \n"), "empty text"),
        (answer(None, message={"content": None, "refusal": "I must not"}), "refused to answer"),
        (http('{"error": "no"}', status="401 Unauthorized"), "refused the API key (401)"),
        (http("denied", status="403 Forbidden"), "403"),
        (http("no such model", status="404 Not Found"), "check llm and llm_base_url"),
        (http("boom", status="500 Internal Server Error"), 'status 500: "boom"'),
        (http("x" * 5000, status="400 Bad Request"), "xxx..."),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "ended, or its connection, during the call"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "gave no answer that can be read"),
        (b"", "ended, or its connection, during the call"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "ended, or its connection, during the call"),
    ],
)
def test_every_unusable_answer_is_one_clear_line(reply: bytes, words: str) -> None:
    assert words in failure(reply)


@pytest.mark.trust
def test_the_key_and_control_characters_of_an_error_page_are_not_repeated() -> None:
    text = failure(http(f"bad key {KEY}\x1b[31m \u202eevil\x00 <b>", status="401 Unauthorized"))
    assert "bad key [key]" in text
    assert "\\u001b" in text
    assert "\\u202e" in text
    assert text.isprintable()


def test_a_key_that_the_excerpt_would_cut_in_two_is_not_repeated() -> None:
    text = failure(http("y" * 150 + KEY, status="500 Internal Server Error"))
    assert KEY[:8] not in text


def test_probabilities_of_another_form_are_a_failure() -> None:
    text = failure(answer(logprobs={"content": [{"token": "x"}]}), replace(ASK, top_logprobs=5))
    assert "token probabilities" in text


@pytest.mark.parametrize(
    ("status", "said"), [(299, "broken JSON"), (300, "redirects"), (399, "redirects"), (400, "status 400")]
)
def test_every_status_of_a_redirect_and_no_other_is_one(status: int, said: str) -> None:
    assert said in failure(http("no", status=f"{status} Such"))


def test_redirects_are_not_followed() -> None:
    with loopback(answer()) as elsewhere:
        text = failure(http("", status="307 Temporary Redirect", more=f"Location: {elsewhere.url}/v1\r\n"))
        assert "redirects elsewhere (307)" in text
        assert elsewhere.requests == []


def test_an_answer_without_end_is_cut_off() -> None:
    assert "larger than" in failure(http(b" " * (MAX_BYTES + 1)))


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


def test_cancel_ends_the_call_at_once_and_closes_the_connection() -> None:
    cancel = threading.Event()

    def hold_and_cancel(server: Any, talk: Any, sent: bytes) -> None:
        cancel.set()
        hold(server, talk, sent)

    with loopback(hold_and_cancel) as server:
        with pytest.raises(Cancelled):
            ask(server.url, cancel=cancel, timeout=3600)
        assert server.hung_up.wait(60)


def test_a_cancelled_call_is_not_sent() -> None:
    cancel = threading.Event()
    cancel.set()
    with loopback(answer()) as server, pytest.raises(Cancelled):
        ask(server.url, cancel=cancel)
    assert server.requests == []


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


def test_the_time_of_an_answer_is_told_in_milliseconds() -> None:
    def slow(_: Any, talk: Any, __: bytes) -> None:
        time.sleep(0.05)  # the endpoint's work
        talk.sendall(answer())

    with loopback(slow) as server:
        assert 50 <= ask(server.url, timeout=60).ms < 60_000


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
        ask(server.url)
        ChatClient(f"{server.url}/v1", model="m", key="", label="m").complete(
            ASK, timeout=5, cancel=threading.Event()
        )
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


# --- streaming


def events(*pieces: Any, end: str = "data: [DONE]\n\n") -> bytes:
    lines = "".join(f"data: {piece if isinstance(piece, str) else json.dumps(piece)}\n\n" for piece in pieces)
    return http(lines + end, kind="text/event-stream")


def piece(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"model": "tiny-2", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}


def streamed(reply: bytes, request: LLMRequest = ASK) -> tuple[Any, list[str], Any]:
    seen: list[str] = []
    with loopback(reply) as server:
        got = client(server.url).complete(
            request, timeout=5, cancel=threading.Event(), written=lambda text: seen.append(text)
        )
        sent = json.loads(server.requests[0].split(b"\r\n\r\n", 1)[1])
    return got, seen, sent


def test_a_streamed_answer_is_the_same_as_a_whole_one() -> None:
    got, seen, sent = streamed(events(piece(""), piece("Hel"), piece("lo"), piece(finish="stop"), USAGE))
    assert (got.text, got.finish, got.model) == ("Hello", "stop", "tiny-2")
    assert (got.prompt_tokens, got.completion_tokens) == (9, 2)
    assert seen == ["Hel", "Hello"]
    assert sent["stream"] is True
    assert sent["stream_options"] == {"include_usage": True}


def test_lines_of_a_stream_that_are_no_data_are_passed_over() -> None:
    lines = 'event: x\nid: {"error": 1}\n: {"error": 2}\ndata:\n\nretry: 7\n\n'
    pieces = "".join(f"data: {json.dumps(one)}\n\n" for one in (piece("Hel"), piece("lo", "stop")))
    got, seen, _ = streamed(
        http(lines + pieces + "data: [DONE]\n\n", kind="text/event-stream; charset=utf-8")
    )
    assert (got.text, seen) == ("Hello", ["Hel", "Hello"])


def test_pieces_of_an_unusual_form_add_nothing_and_what_was_told_first_stays() -> None:
    odd: list[Any] = [
        {"choices": "x"},
        {"choices": [3]},
        {"choices": [{"delta": ["x"]}]},
        {"choices": [{}]},
        piece(""),
        {"choices": [{"delta": {"content": 3}}], "usage": None, "model": ""},
    ]
    got, seen, _ = streamed(events(piece("Hel"), USAGE, *odd, piece("lo", "length"), piece(finish="")))
    assert (got.text, got.finish, got.model) == ("Hello", "length", "tiny-2")
    assert (got.prompt_tokens, got.completion_tokens) == (9, 2)
    assert seen == ["Hel", "Hello"]


def test_a_refusal_in_pieces_is_told_whole() -> None:
    said: Any = [{"choices": [{"delta": {"refusal": text}}]} for text in ("I must ", "not do that")]
    with pytest.raises(ModelFailed, match='refused to answer: "I must not do that"'):
        streamed(events(*said, piece(finish="stop")))


def test_an_endpoint_that_does_not_stream_is_read_all_the_same() -> None:
    got, seen, _ = streamed(answer("Hello"))
    assert (got.text, seen) == ("Hello", [])


def test_probabilities_and_json_are_not_streamed() -> None:
    _, seen, sent = streamed(answer('{"a": 1}'), replace(ASK, schema=SCHEMA))
    assert "stream" not in sent
    assert seen == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (events(piece("Hel"), {"error": {"message": "out of memory"}}), "out of memory"),
        (events(piece("Hel"), "{broken}"), "broken JSON"),
        (events(piece(finish="stop")), "without text"),
        (events(), "without a choice"),
        (events("7"), "not an object"),
        (http("<!doctype html><p>Sign in", kind="text/html"), "web page"),
    ],
)
def test_a_broken_stream_is_one_clear_line(reply: bytes, words: str) -> None:
    with pytest.raises(ModelFailed, match=words) as caught:
        streamed(reply)
    assert "\n" not in str(caught.value)
