"""Every route that asks a model, against imitations of the services people have."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.run_view import model_failures
from core.backends import calibrations
from core.backends.base import Completion, LLMRequest, Message, TokenLogprob
from core.backends.llm import load_llm, pace, reasoning, rejections, wire
from core.backends.llm.client import context_of
from core.backends.llm.model import RemoteLLM
from core.backends.llm.probe import probe
from core.backends.llm.profile import Profile, every, parts
from core.backends.llm.transport import proxy_of
from core.backends.prompting.replies import read_verdict
from core.cli import main
from core.cli.comparison import run_document
from core.domain import settings as settings_module
from core.domain.errors import BadInput, ModelFailed, ModelTimedOut
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Query, Run, Turn
from core.engine import endpoints
from core.engine.contexts import window
from core.engine.doctor import of_endpoint
from core.engine.engine import Engine
from core.engine.request import Request
from core.engine.resources import Resources
from core.routes.registry import routes, use
from core.steps.base import cut_prompt
from tests.fakes import FakeEngine
from tests.loopback import http, loopback
from tests.services import KINDS, THOUGHT, Body, Kind, Service, service

PARAMETERS = {
    "crag": {"evaluator": "llm"},
    "rerank": {"reranker": "llm"},
    "compress": {"how": "llm"},
}
WITHIN = ("azure", "magistral", "ollama", "vllm")  # kinds that ask no more than another one
SPOKEN = (Turn("user", "I have a vase"), Turn("assistant", "ok"))
QUESTION = "How do I send a fragile item back?"


class ServedEngine(FakeEngine):
    """The fake corpus, and the real client of an endpoint."""

    def llm(self, mode: Any = None, name: str = "") -> Any:
        """The one the settings name."""
        return Resources.llm(self, mode, name)


def asking() -> tuple[str, ...]:
    """The routes that ask a model, with some parameters or others."""
    return tuple(one.name for one in routes().values() if Need.LLM in (*one.every_need, *one.uses))


def ask(home: Path, running: Service, names: tuple[str, ...], question: str = QUESTION) -> Run:
    engine = ServedEngine(home, llm_base_url=running.url, web={"w:0-9": "a web page on fragile parcels"})
    given = {name: values for name, values in PARAMETERS.items() if name in names}
    job = engine.start(Request(Query(question, SPOKEN), "tiny", names, given, answers="all"))
    return job.wait(120)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in KINDS if name not in WITHIN])
def test_every_route_answers_with_every_kind_of_service(kind: str, tmp_path: Path) -> None:
    with service(kind) as running:
        run = ask(tmp_path, running, asking())
        first, asked = running.rejected, len(running.requests)
        again = ask(tmp_path, running, ("hyde", "setwise", "agentic", "crag"), "When is the refund paid?")
    failed = [
        (one.route, one.status, one.error or one.answer_error)
        for one in run.results
        if one.status != "ok" or not one.answer or one.answer_error
    ]
    assert len(run.results) >= 25
    assert failed == []
    assert first <= 8
    assert running.rejected == first
    assert len(running.requests) > asked
    prompts = json.dumps([body["messages"] for body in running.requests])
    assert THOUGHT not in prompts
    for result in (*run.results, *again.results):
        assert THOUGHT not in json.dumps([result.answer, [hit.passage.text for hit in result.hits]])
    assert THOUGHT.encode() not in (tmp_path / "cache" / "answers.sqlite").read_bytes()
    thought = sum(span.tokens.reasoning for one in run.results for span in one.spans if span.tokens)
    assert bool(thought) == KINDS[kind].reasons


SAYS = st.text(st.sampled_from("abc <>/\n[]"), max_size=30)
FORMS = {
    "tags": "<think>{thought}</think>{answer}",
    "no opening tag": "{thought}</think>{answer}",
    "never closed": "{answer}<think>{thought}",
    "capitals": "<THINKING>{thought}</THINKING>{answer}",
    "brackets": "[THINK]{thought}[/THINK]{answer}",
    "kimi": "◁think▷{thought}◁/think▷{answer}",
    "twice": "<think>{thought}</think>{answer}<think>{thought}</think>",
    "harmony": "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>"
    "{answer}",
    "field": "{answer}",
    "blocks": "{answer}",
}


@pytest.mark.trust
@given(
    form=st.sampled_from(sorted(FORMS)),
    before=SAYS,
    after=SAYS,
    said=st.text("abc .\n", min_size=1, max_size=30),
    cut=st.integers(0, 200),
)
def test_reasoning_never_reaches_the_answer(form: str, before: str, after: str, said: str, cut: int) -> None:
    thought = f"{before}{THOUGHT}{after}".replace("</", "< /")
    content: Any = FORMS[form].format(thought=thought, answer=said)
    message: Body = {"content": content}
    if form == "field":
        message["reasoning_content"] = thought
    elif form == "blocks":
        message["content"] = [
            {"type": "thinking", "thinking": [{"type": "text", "text": thought}]},
            {"type": "text", "text": content},
        ]
    answer, apart = reasoning.of_message(message)
    assert THOUGHT in apart
    assert THOUGHT not in str(answer)
    assert str(answer).strip() == said.strip()
    if form not in ("no opening tag", "field", "blocks"):  # at any moment of a stream
        assert THOUGHT[:2] not in reasoning.split(content[:cut], ended=False)[0]
    if form == "no opening tag":  # known of the model since its first reply
        assert reasoning.opens_itself(content)
        assert THOUGHT not in reasoning.split(content[:cut], unopened=True, ended=False)[0]


@given(st.text(max_size=60))
def test_text_without_a_tag_is_an_answer_to_the_letter(text: str) -> None:
    if not any(mark in text for mark in "<[◁"):
        assert reasoning.split(text) == (text, "")
        assert reasoning.split(text, ended=False) == (text, "")


def test_probabilities_are_those_of_the_answer_after_its_reasoning() -> None:
    tokens = tuple(TokenLogprob(one, -0.1) for one in ("<think>", "No", "</think>", "\n\n", "Yes", "."))
    assert [one.token for one in reasoning.of_answer(tokens, "Yes.")] == ["Yes", "."]
    assert reasoning.of_answer(tokens, "Perhaps") == ()


PROMPT = (Message("system", "Be brief."), Message("user", "Is it so? Yes or No:"))
PLAIN = LLMRequest("test/1", PROMPT, 60)
VERDICT = LLMRequest("test/2", PROMPT, 1, top_logprobs=20)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Any]:
    """Make a client of a running service."""

    def made(running: Service, **settings: Any) -> RemoteLLM:
        return RemoteLLM(Settings(home=tmp_path, llm_base_url=running.url, llm="m", **settings))

    return made


def complete(llm: RemoteLLM, request: LLMRequest = PLAIN, timeout: float = 20) -> Any:
    return llm.complete(request, timeout=timeout, cancel=threading.Event())


def refusing(refuse: Any) -> Kind:
    return Kind("odd", refuse)


def message(text: str, **more: Any) -> Any:
    return {"error": {"message": text, **more}}


LOC = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
}
LEAST = message("Invalid 'max_output_tokens': Expected a value >= 16, but got 5.", param="max_output_tokens")
GOOGLE = [
    {"error": {"details": [{"fieldViolations": [{"field": "top_logprobs", "description": "Cannot find"}]}]}}
]


@pytest.mark.parametrize(
    ("status", "error", "field", "then"),
    [
        (400, message("no", param="temperature"), "temperature", {"dropped": ("temperature",)}),
        (400, message("`temperature` is deprecated"), "temperature", {"dropped": ("temperature",)}),
        (422, LOC, "seed", {"renamed": {"seed": "random_seed"}}),
        (400, message('Unknown name "seed": Cannot find field.'), "seed", {"dropped": ("seed",)}),
        (400, GOOGLE, "top_logprobs", {"dropped": ("logprobs",)}),
        (400, message("top_logprobs must be at most 5"), "top_logprobs", {"most_alternatives": 5}),
        (403, message("You are not allowed to request logprobs"), "logprobs", {"dropped": ("logprobs",)}),
        (400, {"error": {"metadata": {"raw": json.dumps(LEAST)}}}, "max_tokens", {"least_tokens": 16}),
        (
            400,
            {"error": "Use max_completion_tokens instead of max_tokens"},
            "max_tokens",
            {"renamed": {"max_tokens": "max_completion_tokens"}},
        ),
        (400, {"message": "System role not supported"}, "system", {"dropped": ("system",)}),
    ],
)
def test_a_rejection_in_any_form_teaches_what_to_change(
    status: int, error: Any, field: str, then: Any
) -> None:
    fields = wire.body(VERDICT, model="m", profile=Profile(probabilities=True), thinking=0)
    rejection = rejections.parse(json.dumps(error).encode())
    found = rejections.learned(status, rejection, fields, Profile(), parts(fields, Profile()))
    assert found is not None
    assert field in found.said or "logprobs" in found.said
    assert {name: getattr(found, name) for name in then} == then


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 4,096 tokens; reduce max_tokens",
        "Your credit balance is too low",
        "The model `m` does not exist",
        "something else",
    ],
)
def test_what_is_not_about_a_field_teaches_nothing(said: str) -> None:
    fields = wire.body(PLAIN, model="m")
    rejection = rejections.parse(json.dumps(message(said)).encode())
    assert rejections.learned(400, rejection, fields, Profile(), parts(fields, Profile())) is None
    assert (rejections.window(rejection) == 4096) == ("4,096" in said)


def test_a_rejection_that_names_nothing_is_solved_by_leaving_out_or_teaches_nothing(endpoint: Any) -> None:
    bad = (400, {"error": "Bad Request"})
    with service(refusing(lambda body: bad if "seed" in body else None)) as running:
        llm = endpoint(running)
        assert complete(llm).text
        assert llm.known.get().dropped == ("seed",)
        complete(llm)
    assert running.rejected == 1
    with service(refusing(lambda _body: bad)) as running:
        llm = endpoint(running)
        with pytest.raises(ModelFailed, match="status 400"):
            complete(llm)
        assert llm.known.get().dropped == ()


def test_what_was_learned_outlives_the_program_and_can_be_reset(endpoint: Any, tmp_path: Path) -> None:
    with service("openai-reasoning") as running:
        complete(endpoint(running), VERDICT)
        before = running.rejected
        complete(endpoint(running), VERDICT)
        assert running.rejected == before > 0
        (known,) = every(tmp_path)
        assert (known.model, known.served) == ("m", "m-served")
        assert (known.probabilities, known.reasons) == (False, True)
        llm = endpoint(running)
        llm.known.reset()
        assert every(tmp_path) == []
        complete(llm, VERDICT)
        assert running.rejected == 2 * before


def test_schema_keywords_a_service_rejects_are_left_out(endpoint: Any) -> None:
    text = {"type": "string", "maxLength": 9, "minLength": 1}
    schema = {"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": False}
    with service("azure") as running:
        llm = endpoint(running)
        for _ in range(2):
            made = complete(llm, LLMRequest("t/1", PROMPT, 40, schema=schema))
            assert json.loads(made.text) == {"a": "fragile item"}
    assert running.rejected == 1


@pytest.mark.parametrize(
    ("kind", "calls"), [("openai", True), ("openai-reasoning", True), ("ollama", False), ("gemini", False)]
)
def test_an_action_is_a_function_call_unless_the_service_has_none(
    kind: str, calls: bool, endpoint: Any
) -> None:
    fields = {"action": {"type": "string", "enum": ["find", "read"]}, "input": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    with service(kind) as running:
        for _ in range(2):
            made = complete(endpoint(running), LLMRequest("t/1", PROMPT, 40, schema=schema))
            assert json.loads(made.text) == {"action": "read", "input": "fragile item"}
        assert "tools" in running.requests[0]
        assert ("tools" in running.requests[-1]) is calls
        assert ("response_format" in running.requests[-1]) is not calls


def test_reasoning_has_an_allowance_of_its_own_that_is_learned(endpoint: Any) -> None:
    long = " ".join([THOUGHT] * 3000)
    with service("deepseek", think=long) as running:
        llm = endpoint(running)
        found = complete(llm)
        assert found.finish == "stop"
        assert found.reasoning_tokens == pytest.approx(3000, abs=5)
        assert THOUGHT not in found.text
        assert found.reasoning == long
        complete(llm)
        assert [one["max_tokens"] for one in running.requests] == [60 + 2048, 60 + 8192, 60 + 8192]
        with pytest.raises(ModelFailed, match="llm_reasoning_tokens"):
            complete(endpoint(running, llm_reasoning_tokens=10))


def test_a_quota_that_is_used_up_is_never_asked_again(endpoint: Any) -> None:
    spent = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    with (
        service(refusing(lambda _body: (429, spent))) as running,
        pytest.raises(ModelFailed, match="no quota left"),
    ):
        complete(endpoint(running))
    assert len(running.requests) == 1


HALF = {"message": {"content": "half an"}, "finish_reason": "error", "error": {"code": 502}}


@pytest.mark.parametrize(
    ("status", "reply"),
    [
        *((status, message("overloaded", code=status)) for status in (408, 409, 429, 500, 502, 503, 529)),
        (200, message("overloaded", code=502)),
        (200, {"choices": [HALF]}),
    ],
)
def test_a_failure_that_may_pass_is_tried_again(
    status: int, reply: Any, endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PAUSE_S", 0.001)
    failures = [(status, reply)] * 2
    with service(refusing(lambda _body: failures.pop() if failures else None)) as running:
        assert complete(endpoint(running)).text != "half an"
    assert len(running.requests) == 3


@pytest.mark.parametrize(
    ("headers", "data", "seconds"),
    [
        ({"retry-after-ms": "1500"}, b"", 1.5),
        ({"retry-after": "2"}, b"", 2.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, b"", 90.0),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "9s"}, b"", None),
        ({}, b'[{"error": {"details": [{"retryDelay": "12s"}]}}]', 12.0),
        ({}, b"Rate limit reached. Please try again in 170ms.", 0.17),
        ({}, b"busy", None),
    ],
)
def test_how_long_a_service_asks_to_wait(headers: dict[str, str], data: bytes, seconds: float | None) -> None:
    assert pace.asked_wait(headers, data) == seconds


def test_a_route_runs_with_several_models_side_by_side(tmp_path: Path) -> None:
    with service("openai-reasoning") as one, service("ollama") as two:
        models = {
            "a": {"base_url": one.url, "model": "thinker", "price_prompt": 1.0, "price_completion": 2.0},
            "b": {"base_url": two.url, "model": "plain"},
        }
        engine = ServedEngine(tmp_path, models=models)
        names = ("hyde@a", "hyde@b", "rewrite@b")
        run = engine.start(Request(Query(QUESTION, SPOKEN), "tiny", names)).wait(60)
        assert tuple(result.route for result in run.results if result.status == "ok") == names
        assert run.results[2].title == "Rewrite + hybrid (b)"
        spans = [one["spans"] for one in run_document(run)["results"]]
        asked = [{span["model"] for span in some} - {None} for some in spans]
        assert asked == [{"thinker"}, {"plain"}, {"plain"}]
        thought = [max(span["reasoning_tokens"] for span in some) for some in spans]
        assert thought[0] > 0 == thought[1]
        assert run.settings["models"]["a"]["prices"] == [1.0, 2.0]
        with pytest.raises(BadInput, match=r"models\.c"):
            engine.start(Request(Query(QUESTION), "tiny", ("hyde@c",)))
        with pytest.raises(BadInput, match="asks no language model"):
            engine.start(Request(Query(QUESTION), "tiny", ("bm25@a",)))


def test_the_endpoints_say_what_was_tested_and_who_feels_it(tmp_path: Path) -> None:
    with service("openai-reasoning") as one:
        models = {"gone": {"base_url": "http://127.0.0.1:9/v1", "model": "x"}}
        settings = Settings(home=tmp_path, llm_base_url=one.url, llm="m", models=models)
        use(settings)
        listed = [one for one in endpoints.endpoints(settings) if one.kind == "chat model"]
        test = partial(endpoints.try_endpoint, Engine(settings))
        there, gone = (test(one, lambda *_: None, threading.Event()) for one in listed)
    tested = [there.tested[name] for name in ("chat", "probabilities", "reasoning")]
    assert (there.state, tested) == ("ok", [True, False, True])
    assert "logprobs" in there.rejected
    assert any("setwise" in names for names in there.affected.values())
    assert (gone.name, gone.state) == ("gone", "failed")
    (affected,) = gone.affected.values()
    assert "hyde@gone" in affected


@pytest.mark.parametrize(
    ("listed", "size"),
    [
        ({"data": [{"id": "m", "max_model_len": 32768}, {"id": "n", "max_model_len": 1}]}, 32768),
        ({"data": [{"id": "other", "meta": {"n_ctx": 4096}}]}, 4096),
        ({"data": [{"id": "m"}]}, None),
        ({"data": [{"id": "a"}, {"id": "b"}]}, None),
        ("odd", None),
    ],
)
def test_the_context_length_is_read_from_the_list_of_models(listed: Any, size: int | None) -> None:
    assert context_of(listed, "m") == size


def test_a_service_that_tells_its_context_length_is_believed_once(tmp_path: Path) -> None:
    listed = {"data": [{"id": "m", "max_model_len": 2048}]}
    with service("vllm", models=listed) as running:
        settings = Settings(home=tmp_path, llm_base_url=running.url, llm="m")
        llm = load_llm(settings)
        llm.complete(PLAIN, timeout=20, cancel=threading.Event())
        assert window(llm, settings) == 2048
        assert window(llm, Settings(home=tmp_path, llm_context=4096)) == 4096


def test_a_prompt_that_a_service_cut_is_told() -> None:
    long = LLMRequest("t/1", (Message("user", "word " * 4000),), 5)
    for asked, tokens, told in ((long, 2048, True), (long, 4100, False), (PLAIN, 1, False)):
        assert ("2,048" in cut_prompt(asked, Completion("a", "m", "stop", 1.0, tokens, 1))) == told


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.example.org/v1", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://api.example.org/v1", {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": ".example.org"}, None),
        ("http://127.0.0.1:1/v1", {"HTTP_PROXY": "http://proxy:3128"}, None),
        ("http://10.0.0.1/v1", {"HTTP_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
    ],
)
def test_calls_go_through_the_proxy_of_the_environment_but_never_to_this_machine(
    url: str, environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        for spelled in (name, name.lower()):
            monkeypatch.delenv(spelled, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(url) == proxy


def test_azure_takes_its_version_in_the_query_and_own_headers_their_values_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "secret-team-token")
    said = {"message": {"content": "it is secret-team-token"}, "finish_reason": "stop"}
    settings = {"llm": "gpt", "llm_headers": {"X-Team": "a ${TEAM_TOKEN}"}, "llm_api_key": "sk-azure-123"}
    with loopback(http(json.dumps({"choices": [said]}))) as server:
        url = f"{server.url}/openai/deployments/gpt?api-version=2024-10-21"
        found = complete(RemoteLLM(Settings(home=tmp_path, llm_base_url=url, **settings)))
    head = server.requests[0].partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"post /openai/deployments/gpt/chat/completions?api-version=2024-10-21 ")
    assert b"api-key: sk-azure-123" in head
    assert b"x-team: a secret-team-token" in head
    assert "secret-team-token" not in found.text
    monkeypatch.delenv("TEAM_TOKEN")
    with pytest.raises(BadInput, match="TEAM_TOKEN"):
        RemoteLLM(Settings(home=tmp_path, llm_base_url=url, **settings))
    with pytest.raises(BadInput, match="llm_base_url"):
        RemoteLLM(Settings(home=tmp_path, llm_base_url="https://a.example/v1?key=sk-1", llm="m"))


def test_a_calibration_is_of_the_model_that_the_service_reports(tmp_path: Path) -> None:
    with service("ollama") as running:
        llm = load_llm(Settings(home=tmp_path, llm_base_url=running.url, llm="qwen2.5-coder-1.5b"))
        llm.complete(PLAIN, timeout=20, cancel=threading.Event())
        about = calibrations.subject(llm)
        assert about == f"qwen2.5-coder-1.5b-served at {running.url}"
        assert calibrations.read("evidence", about, tmp_path) is None
    assert calibrations.read("evidence", calibrations.subject(load_llm(Settings(home=tmp_path)))) is not None


@pytest.mark.parametrize(
    ("text", "words", "verdict"),
    [
        ("Yes.", ("yes", "no"), "yes"),
        ("Answer: Yes", ("yes", "no"), "yes"),
        ("Yes or no, who knows", ("yes", "no"), "yes"),
        ("It is not clear", ("yes", "no"), None),
        ("I think so", ("irrelevant", "relevant"), None),
        ("Part", ("fully", "partially", "no"), "partially"),
        ("A better passage is B", ("a", "b"), "b"),
        ("A or B", ("a", "b"), None),
        ("", ("yes", "no"), None),
    ],
)
def test_a_verdict_in_words_is_read_or_is_none(
    text: str, words: tuple[str, ...], verdict: str | None
) -> None:
    assert read_verdict(text, words) == verdict


def test_routes_that_failed_at_their_model_are_told_apart(tmp_path: Path) -> None:
    with service(refusing(lambda _body: (401, {"error": "no"}))) as running:
        run = ask(tmp_path, running, ("hyde", "bm25"))
    assert [one.route for one in model_failures(run)] == ["hyde", "bm25"]  # bm25's answer
    with service("openai") as running:
        assert model_failures(ask(tmp_path, running, ("hyde", "bm25"))) == []


def test_a_service_that_hangs_is_not_waited_for_by_one_call_after_another(endpoint: Any) -> None:
    with service("openai", delay=60.0) as running, ThreadPoolExecutor(8) as pool:
        llm = endpoint(running)
        began = time.monotonic()
        ended = [one.exception() for one in [pool.submit(complete, llm, PLAIN, 0.5) for _ in range(8)]]
        assert all(isinstance(one, ModelTimedOut) for one in ended)
        assert time.monotonic() - began < 3.5  # one after another they would take 4 s
        assert "llm_timeout_s" in str(ended[0])


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """List the routes, as JSON by name or as text, with settings."""

    def call(settings: Settings, *options: str) -> Any:
        monkeypatch.setattr(settings_module, "current", lambda: settings)
        assert main(["routes", *options]) == 0
        out = capsys.readouterr().out
        return {one["name"]: one for one in json.loads(out)["routes"]} if options else out

    return call


def test_routes_say_what_an_endpoint_was_found_to_do(tmp_path: Path, listed: Any) -> None:
    broken = [True]
    with service(refusing(lambda _: (401, {"error": "no entry"}) if broken else None)) as running:
        settings = Settings(home=tmp_path, llm_base_url=running.url, llm="m")
        assert {tuple(one["affected"]) for one in listed(settings, "--json").values()} == {()}

        with pytest.raises(ModelFailed):
            probe(load_llm(settings), timeout=20)
        assert endpoints.chat(settings).state == "failed"  # by another client, as another process would
        found = listed(settings, "--json")
        assert {name for name, one in found.items() if one["affected"]} == set(endpoints.asking())
        assert "no entry" in found["hyde"]["affected"][0] or "401" in found["hyde"]["affected"][0]
        assert f"affects {len(endpoints.asking())} routes" in listed(settings)
        assert of_endpoint(endpoints.chat(settings), settings).state == "warning"

        broken.clear()
        assert probe(load_llm(settings), timeout=20)["chat"]
        assert endpoints.chat(settings).error is None
        found = listed(settings, "--json")
        assert [one for one in found["setwise"]["affected"] if "probabilities" in one]
        assert found["bm25"]["affected"] == []
