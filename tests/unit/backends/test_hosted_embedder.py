"""Embedding services: each kind against a strict local imitation, and everything that a service may do."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.backends.embedder import embedder_identity, load_embedder
from core.backends.hosted_embedder import HostedEmbedder, address
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.models import EmbedderSettings
from core.domain.settings import Settings, load
from tests import embedding_services as services
from tests.embedding_services import DIM, KEY, served, unit
from tests.loopback import Loopback, hold, http, loopback

TEXTS = ["Send it back within 30 days.", "A key is stored for 24 hours.", "Half \ud800 a pair, and 東京."]
CLEAN = [*TEXTS[:2], "Half ? a pair, and 東京."]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.backends.llm.pace.PAUSE_S", 0.001)
    monkeypatch.setenv("TEST_EMBEDDING_KEY", KEY)


def embedder(**given: Any) -> HostedEmbedder:
    spec = {"model": "small", "key_env": "TEST_EMBEDDING_KEY", **given}
    return HostedEmbedder("mine", EmbedderSettings.model_validate(spec))


def small(server: Loopback, **given: Any) -> HostedEmbedder:
    return embedder(base_url=f"{server.url}/v1", **given)


def bodies(server: Loopback) -> list[Any]:
    return [json.loads(sent.split(b"\r\n\r\n", 1)[1]) for sent in server.requests]


KINDS: dict[str, tuple[services.Service, dict[str, Any]]] = {
    "openai": (services.openai, {}),
    "openai, shorter": (services.openai, {"dimensions": 8}),
    "azure, v1": (services.azure, {"kind": "azure", "path": "/openai/v1"}),
    "azure, deployment": (services.azure, {"kind": "azure", "path": "/openai/deployments/small"}),
    "azure, ?api-version": (
        services.azure,
        {"kind": "azure", "path": "/openai/deployments/small?api-version=2024-10-21"},
    ),
    "azure, bare": (services.azure, {"kind": "azure", "path": ""}),
    "ollama": (services.ollama, {"kind": "ollama", "key_env": ""}),
    "lm studio": (services.ollama, {"kind": "lmstudio", "key_env": "", "path": ""}),
    "vllm": (services.vllm, {"kind": "vllm", "key_env": ""}),
    "tei": (services.tei, {"kind": "tei", "key_env": ""}),
    "cohere": (services.cohere, {"kind": "cohere", "path": ""}),
    "cohere, shorter": (
        services.cohere,
        {"kind": "cohere", "path": "/v2", "dimensions": 8, "encoding": "base64"},
    ),
    "voyage": (services.voyage, {"kind": "voyage", "dimensions": 8}),
}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_gives_unit_vectors_in_the_order_of_the_texts(name: str) -> None:
    service, given = KINDS[name]
    given = dict(given)
    path = given.pop("path", "/v1")
    with loopback(served(service)) as server:
        one = embedder(base_url=f"{server.url}{path}", **given)
        dim = given.get("dimensions", DIM)
        made = one.embed(TEXTS)
        np.testing.assert_allclose(made, [unit(text, dim) for text in CLEAN], rtol=1e-5)
        np.testing.assert_allclose(one.embed_query(TEXTS[0]), unit(TEXTS[0], dim), rtol=1e-5)
        assert one.dim == dim
        assert one.tokens > 0
        assert one.embed([]).shape == (0, dim)


def test_questions_and_passages_have_their_own_prefixes_types_and_fields() -> None:
    def kept(_path: str, _headers: dict[str, str], body: dict[str, Any]) -> Any:
        return services._openai_answer(body, 10)

    given = {
        "query_prefix": "query: ",
        "document_prefix": "passage: ",
        "query_type": "q",
        "document_fields": {"task": "retrieval.passage"},
    }
    with loopback(served(kept)) as server:
        one = small(server, **given)
        one.embed_query("how?")
        one.embed(["so", " "])
    asked, read = bodies(server)
    assert (asked["input"], asked["input_type"]) == (["query: how?"], "q")
    assert (read["input"], read["task"]) == (["passage: so", "."], "retrieval.passage")
    assert "input_type" not in read


def test_batches_hold_so_many_texts_and_tokens() -> None:
    with loopback(served(services.openai)) as server:
        small(server, batch=4).embed(["a b"] * 10)
        assert [len(body["input"]) for body in bodies(server)] == [4, 4, 2]
        server.requests.clear()
        small(server, batch_tokens=30).embed(["x" * 40] * 5)
        assert [len(body["input"]) for body in bodies(server)] == [2, 2, 1]


def test_a_batch_that_is_too_large_is_halved_and_remembered() -> None:
    texts = [f"text {number}" for number in range(100)]
    with loopback(served(services.tei)) as server:
        one = small(server, key_env="", batch=100)
        np.testing.assert_allclose(one.embed(texts), [unit(text) for text in texts], rtol=1e-5)
        server.requests.clear()
        one.embed(texts)
        assert max(len(body["input"]) for body in bodies(server)) <= services.TEI_BATCH


def test_a_text_that_is_too_long_is_embedded_by_its_beginning_and_counted() -> None:
    long = " ".join(f"w{number}" for number in range(500))
    with loopback(served(services.tei)) as server:
        one = small(server, kind="tei", key_env="")
        made = one.embed(["short", long, "shorter"])
    np.testing.assert_allclose(made[[0, 2]], [unit("short"), unit("shorter")], rtol=1e-5)
    assert one.shortened == 1
    sent = [text for body in bodies(server) for text in body["input"]]
    assert any(long.startswith(text) and 100 < len(text) < len(long) for text in sent)


def test_a_service_that_knows_no_base64_or_no_dimensions_is_known_as_that() -> None:
    with loopback(served(services.vllm)) as server:
        one = small(server, kind="vllm", key_env="")
        one.embed(TEXTS)
        one.embed(TEXTS)
    assert ["encoding_format" in body for body in bodies(server)] == [True, False, False]
    with loopback(served(services.ollama)) as server:
        one = small(server, kind="ollama", key_env="", dimensions=8)
        with pytest.raises(ModelFailed, match=r"vectors of \[\d+\] numbers; wanted 8"):
            one.embed(TEXTS)


@pytest.mark.parametrize("status", ["429 Too Many", "529 Overloaded"])
def test_what_is_temporary_is_tried_again_when_the_service_says(status: str) -> None:
    began = time.monotonic()

    def busy(server: Loopback, talk: Any, sent: bytes) -> None:
        if len(server.requests) < 3:
            talk.sendall(http("{}", status=status, more="Retry-After: 0.15\r\n"))
        else:
            served(services.openai)(server, talk, sent)

    with loopback(busy) as server:
        assert small(server).embed_query("how?").shape == (DIM,)
    assert len(server.requests) == 3
    assert time.monotonic() - began >= 0.3


def test_a_spent_quota_and_a_wait_beyond_the_deadline_are_not_waited_for() -> None:
    spent = http('{"error": {"code": "insufficient_quota"}}', status="429 Too Many Requests")
    with loopback(spent) as server, pytest.raises(ModelFailed, match="quota"):
        small(server).embed_query("how?")
    assert len(server.requests) == 1
    later = http("{}", status="429 Too Many Requests", more="Retry-After: 3600\r\n")
    with loopback(later) as server, pytest.raises(ModelFailed, match=r"asks to wait 3\.6e"):
        small(server).embed_query("how?")


def test_stop_and_the_deadline_end_a_call() -> None:
    stop = threading.Event()

    def hold_and_stop(server: Loopback, talk: Any, sent: bytes) -> None:
        stop.set()
        hold(server, talk, sent)

    with loopback(hold_and_stop) as server, pytest.raises(Cancelled):
        small(server).embed_within(["how?"], stop)
    with loopback(hold) as server, pytest.raises((ModelTimedOut, ModelFailed), match=r"0\.2 s"):
        small(server, timeout_s=0.2).embed_query("how?")


@pytest.mark.parametrize(
    "body",
    [
        "<!DOCTYPE html><html>Sign in</html>",
        "",
        "[]",
        '{"data": []}',
        '{"data": [{"embedding": []}]}',
        '{"data": [{"embedding": [1, "x"]}]}',
        '{"data": [{"embedding": [NaN, 1]}]}',
        '{"data": [{"embedding": [0, 0]}]}',
        '{"data": [{"embedding": "%%%"}]}',
        '{"data": ["x"]}',
        '{"data": [{"index": 1, "embedding": [1]}]}',
        '{"data": [{"index": "a", "embedding": [1]}]}',
        '{"embeddings": {"float": null}}',
        '{"error": {"message": "no"}}',
    ],
)
def test_an_answer_that_is_not_one_vector_a_text_is_a_failure(body: str) -> None:
    with loopback(http(body)) as server, pytest.raises(ModelFailed) as caught:
        small(server).embed_query("how?")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", ["400 Bad", "401 Unauthorized", "307 Away"])
def test_no_refusal_repeats_the_key(status: str) -> None:
    said = json.dumps({"error": f"your key {KEY} and Bearer {KEY[3:]} are wrong"})
    with loopback(http(said, status=status)) as server, pytest.raises(ModelFailed) as caught:
        small(server).embed_query("how?")
    assert KEY[3:] not in str(caught.value)
    assert KEY[:12] not in str(caught.value)


def test_the_key_comes_from_the_environment_and_is_known_as_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = EmbedderSettings(model="small", key_env="TEST_EMBEDDING_KEY", headers={"X-Team": "${TEST_TEAM}"})
    monkeypatch.setenv("TEST_TEAM", "team-secret-42")
    settings = Settings(home=tmp_path, embedders={"mine": spec})
    assert {KEY, "team-secret-42"} <= set(settings.secrets())
    assert KEY not in repr(settings) + settings.model_dump_json()
    with loopback(served(services.openai)) as server:
        sent = spec.model_copy(update={"base_url": f"{server.url}/v1"})
        HostedEmbedder("mine", sent).embed_query("how?")
    assert b"x-team: team-secret-42" in server.requests[0].lower()
    monkeypatch.delenv("TEST_EMBEDDING_KEY")
    with pytest.raises(Unavailable, match="TEST_EMBEDDING_KEY"):
        load_embedder("mine", settings=settings)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "ollama", "model": "m"},
        {"model": "m", "headers": {"Host": "x"}},
        {"model": "m", "key_env": "two words"},
    ],
)
def test_a_table_that_is_wrong_is_refused_by_name(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"embedders\.mine"):
        load(home=tmp_path, embedders={"mine": given})


@pytest.mark.parametrize("url", ["localhost:80", "http://me:secret@x/v1", "http://x/v1?key=secret"])
def test_an_address_that_is_none_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(BadInput, match="base_url") as caught:
        address(EmbedderSettings(model="m", base_url=url), "[embedders.mine]")
    assert "secret" not in str(caught.value)


def test_what_an_index_records_changes_with_the_vectors_and_not_with_key_or_price(tmp_path: Path) -> None:
    spec = {"model": "small", "base_url": "http://127.0.0.1:1/v1"}

    def identity(**more: Any) -> str:
        given = EmbedderSettings.model_validate({**spec, **more})
        return embedder_identity("mine", Settings(home=tmp_path, embedders={"mine": given}))

    same = [{}, {"price": 1.0}, {"key_env": "TEST_EMBEDDING_KEY"}, {"batch": 7}, {"encoding": "float"}]
    other: list[dict[str, Any]] = [
        {"model": "large"},
        {"dimensions": 8},
        {"query_prefix": "q: "},
        {"document_type": "d"},
        {"base_url": "http://127.0.0.1:2/v1"},
        {"document_fields": {"task": "x"}},
    ]
    assert len({identity(**more) for more in same}) == 1
    assert len({identity(**more) for more in [{}, *other]}) == len(other) + 1
