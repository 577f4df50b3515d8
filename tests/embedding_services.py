"""Local imitations of embedding services, as strict as their documentation: unknown fields are refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from tests.loopback import Loopback, http

KEY = "sk-very-secret-0123456789"
DIM = 32
TEI_BATCH, TEI_TOKENS, COHERE_BATCH = 32, 60, 96


def vector(text: str, dim: int = DIM) -> list[float]:
    """A bag of hashed words, not of length 1."""
    made = np.zeros(dim)
    for word in re.findall(r"\w+", text.lower()):
        made[int(hashlib.md5(word.encode()).hexdigest(), 16) % dim] += 1
    return [*(made + 0.01)]


def unit(text: str, dim: int = DIM) -> Any:
    """The vector as it is to arrive."""
    made = np.array(vector(text, dim), np.float32)
    return made / np.linalg.norm(made)


class Refused(Exception):
    """A request that the service does not take: its status and what it says."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status, self.body = status, body


def openai(path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
    """OpenAI: error.message and error.param."""

    def refuse(message: str, param: str | None = None, status: int = 400) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": param}
        raise Refused(status, {"error": error})

    if headers.get("authorization") != f"Bearer {KEY}":
        refuse(f"Incorrect API key provided: {headers.get('authorization')}", status=401)
    if path != "/v1/embeddings":
        refuse("no such route", status=404)
    for name in body.keys() - {"model", "input", "encoding_format", "dimensions", "user"}:
        refuse(f"Unrecognized request argument supplied: {name}", name)
    return _openai_answer(body, 2048, refuse)


def azure(path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
    """Azure: a key in api-key, and deployments only with ?api-version."""
    parts = urlsplit(path)
    if headers.get("api-key") != KEY or "authorization" in headers:
        raise Refused(401, {"error": {"code": "401", "message": "Access denied due to invalid key"}})
    version = parse_qs(parts.query).get("api-version")
    if parts.path == "/openai/deployments/small/embeddings" and version == ["2024-10-21"]:
        return _openai_answer(body, 2048)
    if parts.path == "/openai/v1/embeddings" and version is None and body.get("model") == "small":
        return _openai_answer(body, 2048)
    raise Refused(404, {"error": {"code": "404", "message": "Resource not found"}})


def ollama(path: str, _headers: dict[str, str], body: dict[str, Any]) -> Any:
    """Ollama and LM Studio: vectors as numbers whatever is asked, `dimensions` ignored."""
    if path != "/v1/embeddings":
        raise Refused(404, "404 page not found")
    return _openai_answer({**body, "encoding_format": "float", "dimensions": None}, 2048)


def vllm(path: str, _headers: dict[str, str], body: dict[str, Any]) -> Any:
    """vLLM with a model that is no Matryoshka model and an old client: neither dimensions nor base64."""
    if path != "/v1/embeddings":
        raise Refused(404, {"detail": "Not Found"})
    for name in ("dimensions", "encoding_format"):
        if name in body:
            raise Refused(400, {"object": "error", "message": f"{name} is not supported", "code": 400})
    return _openai_answer(body, 2048)


def tei(path: str, _headers: dict[str, str], body: dict[str, Any]) -> Any:
    """Text Embeddings Inference: small batches, and no text longer than the model reads."""
    if path != "/v1/embeddings":
        raise Refused(404, "")
    texts = body["input"]
    if len(texts) > TEI_BATCH:
        message = f"batch size {len(texts)} > maximum allowed batch size {TEI_BATCH}"
        raise Refused(413, {"error": message, "error_type": "Validation"})
    for text in texts:
        if (tokens := len(text.split())) > TEI_TOKENS:
            message = f"`inputs` must have less than {TEI_TOKENS} tokens. Given: {tokens}"
            raise Refused(413, {"error": message, "error_type": "Validation"})
    return _openai_answer(body, TEI_BATCH)


def cohere(path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
    """Cohere's v2/embed."""
    if headers.get("authorization") != f"Bearer {KEY}":
        raise Refused(401, {"message": "invalid api token"})
    known = {"model", "input_type", "texts", "embedding_types", "output_dimension", "truncate", "max_tokens"}
    if path != "/v2/embed" or body.keys() - known or not body.get("embedding_types"):
        raise Refused(400, {"message": "invalid request"})
    if body.get("input_type") not in ("search_document", "search_query"):
        raise Refused(400, {"message": "input_type must be one of search_document, search_query"})
    if len(body["texts"]) > COHERE_BATCH:
        raise Refused(400, {"message": "too many texts: at most 96 texts per call"})
    made = [vector(text, body.get("output_dimension", DIM)) for text in body["texts"]]
    (kind,) = body["embedding_types"]
    sent = made if kind == "float" else [_base64(one) for one in made]
    units = {"input_tokens": sum(len(text.split()) for text in body["texts"])}
    return {"id": "1", "embeddings": {kind: sent}, "texts": body["texts"], "meta": {"billed_units": units}}


def voyage(path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
    """Voyage: output_dimension, input_type, and nothing else of OpenAI's."""
    if headers.get("authorization") != f"Bearer {KEY}":
        raise Refused(401, {"detail": "Provided API key is invalid."})
    known = {"model", "input", "input_type", "truncation", "output_dimension", "output_dtype"}
    known.add("encoding_format")
    for name in body.keys() - known:
        raise Refused(400, {"detail": f"Argument '{name}' is not supported by our API"})
    if path != "/v1/embeddings" or body.get("encoding_format") not in (None, "base64"):
        raise Refused(400, {"detail": "bad request"})
    if body.get("input_type") not in (None, "query", "document"):
        raise Refused(400, {"detail": "input_type must be query or document"})
    answer = _openai_answer({**body, "dimensions": body.get("output_dimension")}, 1000)
    return {**answer, "usage": {"total_tokens": answer["usage"]["total_tokens"]}}


def _openai_answer(body: dict[str, Any], most: int, refuse: Callable[..., None] | None = None) -> Any:
    texts = body["input"]
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
        raise Refused(400, {"error": {"message": "'$.input' is invalid", "param": "input"}})
    if len(texts) > most:
        raise Refused(400, {"error": {"message": f"input is too large: at most {most}", "param": "input"}})
    made = [vector(text, body.get("dimensions") or DIM) for text in texts]
    wanted = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": at, "embedding": _base64(one) if wanted else one}
        for at, one in enumerate(made)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data[::-1], "model": body.get("model"), "usage": usage}


def _base64(numbers: list[float]) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


Service = Callable[[str, dict[str, str], dict[str, Any]], Any]


def served(service: Service) -> Callable[[Loopback, socket.socket, bytes], None]:
    """A reply for `tests.loopback.loopback`."""

    def reply(_server: Loopback, talk: socket.socket, sent: bytes) -> None:
        head, _, content = sent.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
        try:
            answer, status = service(first.split()[1], headers, json.loads(content)), "200 OK"
        except Refused as refused:
            answer, status = refused.body, f"{refused.status} Refused"
        talk.sendall(http(answer if isinstance(answer, str) else json.dumps(answer), status=status))

    return reply
