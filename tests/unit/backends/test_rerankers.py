"""Rerankers: every /rerank dialect and failure against a local server, and a tiny real cross-encoder."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.backends.rerankers import Reranker
from core.backends.rerankers.cross import AT_ONCE, CrossEncoderReranker, HttpReranker, endpoint
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.types import Passage
from tests.loopback import Loopback, http, loopback
from tests.tiny import bert, tokenizer


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once where a service does not say when."""
    monkeypatch.setattr("core.backends.llm.pace.PAUSE_S", 0.001)


KEY = "rk-very-secret-0123"
PASSAGES = [
    Passage("a", "a", "Returns", "Send it back within 30 days."),
    Passage("b", "b", "", "Half \ud800 a pair, and 東京."),
    Passage("c", "c", "Keys", "A key is stored for 24 hours."),
]
GIVEN = [0.25, -3.0, 1.5]


def results(scores: list[Any], name: str = "relevance_score") -> list[dict[str, Any]]:
    """Best first, as servers answer."""
    found = [{"index": index, name: score} for index, score in enumerate(scores)]
    return sorted(found, key=lambda result: -result[name])


COHERE = {"id": "1", "results": results(GIVEN), "meta": {"billed_units": {"search_units": 1}}}
JINA = {"model": "jina", "results": [{**r, "document": {"text": "…"}} for r in results(GIVEN)]}
VOYAGE = {"object": "list", "data": results(GIVEN), "model": "rerank-2.5"}
LLAMA = {"model": "bge", "object": "list", "usage": {"prompt_tokens": 9}, "results": results(GIVEN)}
DIALECTS = {"cohere": COHERE, "jina and vllm": JINA, "llama.cpp": LLAMA}


def reranker(url: str, **more: Any) -> HttpReranker:
    return HttpReranker(f"{url}/v1", model="tiny", key=KEY, **more)


def bodies(server: Loopback) -> list[Any]:
    return [json.loads(sent.split(b"\r\n\r\n", 1)[1]) for sent in server.requests]


def failure(reply: bytes) -> str:
    with loopback(reply) as server, pytest.raises(ModelFailed) as caught:
        reranker(server.url).rerank("how?", PASSAGES)
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize("name", DIALECTS)
def test_scores_come_back_in_the_order_of_the_passages(name: str) -> None:
    with loopback(http(json.dumps(DIALECTS[name]))) as server:
        assert reranker(server.url).rerank("how \ud800?", PASSAGES) == GIVEN
    texts = ["Returns Send it back within 30 days.", "Half ? a pair, and 東京."]
    texts.append("Keys A key is stored for 24 hours.")
    assert bodies(server) == [{"model": "tiny", "query": "how ??", "top_n": 3, "documents": texts}]
    head = server.requests[0].split(b"\r\n\r\n", 1)[0]
    assert head.startswith(b"POST /v1/rerank ")
    assert f"authorization: Bearer {KEY}".encode() in head


def tei(_: Loopback, talk: Any, sent: bytes) -> None:
    """Text Embeddings Inference: wants `texts`, at most 32 of them, and answers with a bare list."""
    body = json.loads(sent.split(b"\r\n\r\n", 1)[1])
    if "texts" not in body:
        wrong = "Failed to deserialize the JSON body into the target type: missing field `texts`"
        talk.sendall(http(wrong, status="422 Unprocessable Entity", kind="text/plain"))
    elif len(body["texts"]) > 32:
        talk.sendall(http('{"error": "batch size", "error_type": "Validation"}', status="413 Too Large"))
    else:
        talk.sendall(http(json.dumps(results([len(text) / 100 for text in body["texts"]], "score"))))


def test_a_server_that_asks_for_texts_gets_them_in_batches_and_is_remembered() -> None:
    many = [Passage(str(n), str(n), "", "x" * n) for n in range(70)]
    with loopback(tei) as server:
        one = reranker(server.url)
        assert one.rerank("how?", many) == [n / 100 for n in range(70)]
        assert [len(body.get("texts", ())) for body in bodies(server)] == [0, 32, 32, 6]
        one.rerank("how?", PASSAGES)
    assert bodies(server)[-1]["truncate"] is True
    assert len(server.requests) == 5


def test_many_documents_go_in_several_calls() -> None:
    def answer(_: Loopback, talk: Any, sent: bytes) -> None:
        documents = json.loads(sent.split(b"\r\n\r\n", 1)[1])["documents"]
        talk.sendall(http(json.dumps({"results": results([float(text) for text in documents])})))

    count = AT_ONCE["top_n"] + 7
    with loopback(answer) as server:
        got = reranker(server.url).rerank("?", [Passage(str(n), "d", "", str(n)) for n in range(count)])
    assert got == list(map(float, range(count)))
    assert [body["top_n"] for body in bodies(server)] == [100, 7]


def voyage(_: Loopback, talk: Any, sent: bytes) -> None:
    """Voyage: knows its own fields only, and answers in `data`."""
    body = json.loads(sent.split(b"\r\n\r\n", 1)[1])
    for name in body.keys() - {"query", "documents", "model", "top_k", "return_documents", "truncation"}:
        wrong = json.dumps({"detail": f"Argument '{name}' is not supported by our API"})
        talk.sendall(http(wrong, status="400 Bad Request"))
        return
    talk.sendall(http(json.dumps(VOYAGE)))


def test_voyage_is_asked_in_its_own_words_after_one_refusal() -> None:
    with loopback(voyage) as server:
        one = reranker(server.url)
        assert one.rerank("how?", PASSAGES) == GIVEN
        assert one.rerank("how?", PASSAGES) == GIVEN
    assert [set(body) & {"top_n", "top_k"} for body in bodies(server)] == [{"top_n"}, {"top_k"}, {"top_k"}]


def test_nothing_to_score_calls_nobody() -> None:
    with loopback(b"") as server:
        assert reranker(server.url).rerank("how?", []) == []
    assert server.requests == []


def scored(*given: Any) -> str:
    """A reply with (index, score) of each passage."""
    return json.dumps({"results": [{"index": index, "relevance_score": score} for index, score in given]})


THREE = tuple(enumerate(GIVEN))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<!DOCTYPE html><html>Sign in</html>", "web page"),
        ('"fine"', "without results"),
        ('{"data": []}', "wanted one of each of 0 to 2"),
        ('{"error": {"message": "no"}}', "without results"),
        (scored(), "wanted one of each of 0 to 2"),
        (scored(*THREE[:2]), "wanted one of each of 0 to 2"),
        (scored(*THREE, (0, 1)), "wanted one of each of 0 to 2"),
        (scored((3, 1)), "wanted one of each of 0 to 2"),
        (scored((-1, 1)), "wanted one of each of 0 to 2"),
        *(
            (scored(pair), "without an index")
            for pair in (("0", 1), (True, 1), (0, None), (0, "1"), (0, True))
        ),
        *((scored((0, float(score))), "finite score") for score in ("nan", "-inf")),
        ('{"results": [{"index": 0, "relevance_score": 1e999}]}', "finite score"),
        ('{"results": ["a\\nb"]}', "without an index"),
    ],
)
def test_an_answer_that_is_not_one_score_a_passage_is_a_failure(body: str, said: str) -> None:
    assert said in failure(http(body))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("401 Unauthorized", "refused the key"),
        ("413 Payload Too Large", "too long or too many"),
        ("429 Too Many Requests", "quota"),
        ("307 Temporary Redirect", "redirects elsewhere"),
    ],
)
def test_a_refusal_says_what_it_was_and_never_repeats_the_key(status: str, said: str) -> None:
    more = "Location: http://127.0.0.1:1/\r\n" if status.startswith("3") else ""
    assert said in failure(http(f'{{"error": "bad key {KEY} \\u202e"}}', status=status, more=more))


def test_a_server_that_is_not_there_or_hangs_up_is_a_failure() -> None:
    assert "ended, or its connection, during the call" in failure(b"")
    with pytest.raises(ModelFailed, match="cannot be reached"):
        HttpReranker("http://127.0.0.1:9").rerank("how?", PASSAGES)


def test_an_address_may_be_the_servers_or_the_whole_one_and_is_refused_without_its_secrets() -> None:
    assert endpoint("http://127.0.0.1:8080") == "http://127.0.0.1:8080/rerank"
    assert endpoint(" https://api.example.com/v2/rerank/ ") == "https://api.example.com/v2/rerank"
    assert endpoint("http://[::1]:80/reranking") == "http://[::1]:80/reranking"
    for url in ("", "localhost:80", "ftp://x/rerank", "http://me:pw@x", "http://x?key=pw", "http://x:port"):
        with pytest.raises(BadInput, match="address") as caught:
            HttpReranker(url)
        assert "pw" not in str(caught.value)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(BadInput) as caught:
        HttpReranker("http://x", key=key)
    assert key not in str(caught.value)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny models as their authors would save them: a reranker, a classifier, and a bare encoder."""
    from transformers import BertForSequenceClassification, BertModel

    made = {}
    for name, kind, labels in (
        ("reranker", BertForSequenceClassification, 1),
        ("classifier", BertForSequenceClassification, 3),
        ("encoder", BertModel, 1),
    ):
        made[name] = tmp_path_factory.mktemp(name)
        bert(kind, num_labels=labels).save_pretrained(made[name])
        tokenizer().save_pretrained(made[name])
    return made


@pytest.mark.model
def test_a_cross_encoder_scores_pairs_as_its_model_does(folders: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    ours: Reranker = CrossEncoderReranker(str(folders["reranker"]))
    model = AutoModelForSequenceClassification.from_pretrained(folders["reranker"]).eval()
    cut = AutoTokenizer.from_pretrained(folders["reranker"])
    passages = [Passage(str(n), "d", "key", "send back " * (n % 11)) for n in range(30)]
    expected = []
    for passage in passages:
        pair = cut("a key", f"{passage.title} {passage.text}".strip(), truncation=True, return_tensors="pt")
        with torch.no_grad():
            expected.append(float(model(**pair).logits[0, 0]))
    got = ours.rerank("a key", passages)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert len({round(score, 3) for score in got}) == 11
    assert ours.rerank("a key", []) == []
    assert len(ours.rerank("\ud800", [PASSAGES[1]])) == 1


@pytest.mark.model
def test_a_cross_encoder_stops_when_asked_or_out_of_time(folders: dict[str, Path]) -> None:
    ours = CrossEncoderReranker(str(folders["reranker"]))
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        ours.rerank("a key", PASSAGES, cancel=stop)
    with pytest.raises(ModelTimedOut, match="give fewer"):
        ours.rerank("a key", PASSAGES * 20, timeout=0)


@pytest.mark.model
def test_what_is_no_trained_reranker_is_not_used_as_one(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, why in (
        (str(folders["classifier"]), "3 classes"),
        (str(folders["encoder"]), "BertModel, not a trained cross-encoder"),
        ("nobody/no-such-model", "cross-encoder/ms-marco"),
    ):
        with pytest.raises(Unavailable, match=why) as caught:
            CrossEncoderReranker(name)
        assert "\n" not in str(caught.value)
    ours = CrossEncoderReranker(str(folders["reranker"]))
    monkeypatch.setattr(ours._model, "predict", lambda pairs, **_: np.full(len(pairs), np.nan))
    with pytest.raises(ModelFailed, match="'a' the score nan"):
        ours.rerank("a key", PASSAGES[:1])
