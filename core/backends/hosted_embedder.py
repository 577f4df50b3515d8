"""Embedding services: `/v1/embeddings` as OpenAI and many servers speak it, Azure, Cohere and Voyage.

Sources: the vendors' API references (OpenAI "Create embeddings", Azure "Embeddings", Cohere "Embed API v2",
Voyage "Text embedding models"), read in November 2026.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import numpy as np

from core.backends.admission import asker
from core.backends.base import Matrix, Vector
from core.backends.endpoint import Endpoint, HttpReply
from core.backends.llm.wire import EndpointWords, parsed
from core.backends.weights import clean
from core.domain.errors import BadInput, Unavailable
from core.domain.models import EmbedderSettings
from core.domain.reach import split

Use = Literal["query", "document"]
BULK_S = 1_800.0  # a batch of a corpus may wait for the service's limits
BYTES_A_TOKEN = 4  # of UTF-8, about
MIN_TEXT_CHARS = 16  # characters below which a text is not too long, whatever a service says
TYPES: dict[str, dict[Use, str]] = {
    "cohere": {"query": "search_query", "document": "search_document"},
    "voyage": {"query": "query", "document": "document"},
}
AZURE_VERSION = "2024-10-21"  # of the deployments' API, unless another is given
_TOO_MANY = re.compile(rb"batch|too many|too large|at most|less than|length|token|larger than|exceed", re.I)
_NO_ENCODING = re.compile(rb"encoding_format", re.I)
_TOO_LONG = re.compile(rb"token|length|too long|context|less than", re.I)
TOO_LARGE = (400, 413, 422)  # statuses of a request that may hold too much
PROBE = "Is it there?"


class HostedEmbedder:
    """A service's model; safe to call from several threads. `tokens` counts what it reported."""

    def __init__(self, name: str, spec: EmbedderSettings, secrets: Sequence[str] = ()) -> None:
        """Nothing is called yet. Raises BadInput for a wrong address, Unavailable without the key."""
        self.name, self.spec = name, spec
        where = f"[embedders.{name}]"
        if spec.key_env and not spec.key():
            raise Unavailable(f"{where}: the environment variable {spec.key_env} with the API key is not set")
        key = spec.key()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise BadInput(f"{where}: the API key in {spec.key_env} contains characters that no key has")
        url = address(spec, where)
        words = EndpointWords(f"embedder {name} ({spec.model} at {url})", (*spec.secrets(), *secrets))
        headers = spec.sent_headers()
        if _is_azure(spec) and key:
            headers, key = {**headers, "api-key": key}, ""
        self._endpoint = Endpoint(url, words, key=key, headers=headers)
        self._base64 = spec.encoding == "base64" or (
            spec.encoding == "auto" and spec.kind in ("openai", "azure", "vllm", "voyage")
        )
        self._most = spec.texts_at_once
        self._lock = threading.Lock()
        self._dim = 0
        self.tokens = 0
        self.shortened = 0  # texts that were longer than the service reads
        self.probe_ms = 0.0

    @property
    def dim(self) -> int:
        """Numbers in a vector; the first time one word is embedded to find out, and whether it works."""
        with self._lock:
            known = self._dim
        if not known:
            began = time.perf_counter()
            known = int(self._embedded([PROBE], "query", self.spec.timeout_s, threading.Event()).shape[1])
            self.probe_ms = (time.perf_counter() - began) * 1000
        return known

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one question, shape (dim,). Raises ModelFailed, ModelTimedOut,
        Cancelled.
        """
        stop = asker().cancel or threading.Event()
        found: Vector = self._embedded([text], "query", self.spec.timeout_s, stop)[0]
        return found

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim). Raises like `embed_query`."""
        return self.embed_within(texts, asker().cancel or threading.Event())

    def embed_within(self, texts: Sequence[str], cancel: threading.Event, use: Use = "document") -> Matrix:
        """Embed like `embed`, or as questions, until `cancel` is set, which raises Cancelled."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._embedded(texts, use, BULK_S, cancel)

    def batches(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        """Positions that share a request, for texts of so many tokens."""
        start = 0
        for at in range(1, len(sizes) + 1):
            full = at - start >= self._most or sum(sizes[start : at + 1]) > self.spec.tokens_at_once
            if full or at == len(sizes):
                yield list(range(start, at))
                start = at

    def _embedded(self, texts: Sequence[str], use: Use, timeout: float, cancel: threading.Event) -> Matrix:
        prefix = self.spec.query_prefix if use == "query" else self.spec.document_prefix
        sent = [clean(prefix + text) if text.strip() else "." for text in texts]  # nobody embeds nothing
        end = time.monotonic() + timeout
        made = [
            self._batch([sent[at] for at in some], use, end, cancel)
            for some in self.batches([about_tokens(text) for text in sent])
        ]
        return np.concatenate(made)

    def _batch(self, texts: list[str], use: Use, end: float, cancel: threading.Event) -> Matrix:
        """One request; where it holds too much for the service, several, and smaller ones from then on."""
        reply = self._post(texts, use, end, cancel)
        if reply.status == 200:
            return self._read(reply.data, len(texts))
        if reply.status in (400, 422) and self._base64 and _NO_ENCODING.search(reply.data):
            self._base64 = False
            return self._batch(texts, use, end, cancel)
        if reply.status in TOO_LARGE and (reply.status == 413 or _TOO_MANY.search(reply.data)):
            if len(texts) > 1:
                half = len(texts) // 2
                self._most = min(self._most, half)
                parts = (texts[at : at + half] for at in range(0, len(texts), half))
                return np.concatenate([self._batch(part, use, end, cancel) for part in parts])
            # As much of a text as the service accepts, a quarter less at a time.
            text = texts[0]
            while len(text) > MIN_TEXT_CHARS and reply.status in TOO_LARGE and _TOO_LONG.search(reply.data):
                text = text[: len(text) * 3 // 4]
                reply = self._post([text], use, end, cancel)
                if reply.status == 200:
                    with self._lock:
                        self.shortened += 1
                    return self._read(reply.data, 1)
        raise self._endpoint.refusal(reply)

    def _post(self, texts: list[str], use: Use, end: float, cancel: threading.Event) -> HttpReply:
        spec, cohere, voyage = self.spec, self.spec.kind == "cohere", self.spec.kind == "voyage"
        asked = use == "query"
        encoding = "base64" if self._base64 else "float"
        body: dict[str, Any] = {"model": spec.model, "texts" if cohere else "input": texts}
        if kind := (spec.query_type if asked else spec.document_type) or TYPES.get(spec.kind, {}).get(use):
            body["input_type"] = kind
        if cohere:
            body |= {"embedding_types": [encoding], "truncate": "END"}
        elif self._base64 or (spec.encoding == "float" and not voyage):
            body["encoding_format"] = encoding
        if voyage:
            body["truncation"] = True
        if spec.dimensions:
            body["output_dimension" if cohere or voyage else "dimensions"] = spec.dimensions
        body |= spec.query_fields if asked else spec.document_fields
        left = max(0.01, end - time.monotonic())
        return self._endpoint.post(body, timeout=left, cancel=cancel, once_s=spec.timeout_s)

    def _read(self, data: bytes, count: int) -> Matrix:
        """Return the unit vectors of a response, shape (count, dim). Raises ModelFailed for anything else."""
        words = self._endpoint.words
        answer = parsed(data, words, "is base_url right?")
        found = vectors_of(answer, count)
        if found is None:
            raise words.failed(f"did not return {count} vectors", data)
        lengths = sorted({len(one) for one in found})
        wanted = self.spec.dimensions or self._dim or lengths[0]
        if lengths != [wanted] or not wanted:
            raise words.failed(
                f"returned vectors of {lengths} numbers; wanted {wanted or 'some'} (dimensions)"
            )
        made = np.array(found, np.float32)
        norms = np.linalg.norm(made, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise words.failed("returned a vector without a direction (zeros, or no finite numbers)")
        with self._lock:
            self._dim = wanted
            self.tokens += _tokens(answer)
        value: Matrix = made / norms
        return value


def about_tokens(text: str) -> int:
    """About how many tokens a text has, for limits and estimates."""
    return 1 + math.ceil(len(text.encode("utf-8", "replace")) / BYTES_A_TOKEN)


def address(spec: EmbedderSettings, where: str) -> str:
    """Return the URL to post to, safe to show. Raises BadInput, which repeats no possibly secret part."""
    base, _, query = spec.url.strip().partition("?")
    wrong = f"{where}: base_url is http://host:port/v1 or https://host/v1"
    version = spec.api_version
    if query:
        given = parse_qs(query)
        if set(given) != {"api-version"}:
            raise BadInput(f"{wrong}; without a query, but for Azure's ?api-version")
        version = given["api-version"][0]
    origin, path = split(base, wrong, "user or password: name the key's environment variable in key_env")
    if path.endswith(("/embeddings", "/embed")):
        path = path.rpartition("/")[0]
    if spec.kind == "cohere":
        return f"{origin}{path or '/v2'}/embed"
    if _is_azure(spec) and not path:
        path = f"/openai/deployments/{spec.model}" if version else "/openai/v1"
    if "/deployments/" in path:
        version = version or AZURE_VERSION
    return f"{origin}{path or '/v1'}/embeddings" + (f"?api-version={version}" if version else "")


def _is_azure(spec: EmbedderSettings) -> bool:
    host = urlsplit(spec.url).hostname or ""
    return spec.kind == "azure" or host.endswith((".openai.azure.com", ".cognitiveservices.azure.com"))


def vectors_of(answer: Any, count: int) -> list[Any] | None:
    """Return the `count` vectors of a response in the order sent, or None if they are missing."""
    if not isinstance(answer, dict):
        return None
    found: Any = answer.get("embeddings")
    if isinstance(found, dict):  # Cohere, by type
        found = found.get("float", found.get("float_", found.get("base64")))
    if isinstance(data := answer.get("data"), list):
        by_index = {one.get("index", at): one for at, one in enumerate(data) if isinstance(one, dict)}
        found = [by_index[at].get("embedding") for at in range(len(data)) if at in by_index]
    if not isinstance(found, list) or len(found) != count:
        return None
    read = [_numbers(one) for one in found]
    return None if any(one is None for one in read) else read


def _numbers(given: Any) -> Any:
    """Decode a vector sent as a list of numbers or as base64 of little-endian float32; None for anything
    else.
    """
    if isinstance(given, list):
        return given if all(type(one) in (int, float) for one in given) else None
    try:
        return np.frombuffer(base64.b64decode(given, validate=True), "<f4")
    except (TypeError, ValueError):  # binascii's error is a ValueError
        return None


def _tokens(answer: Any) -> int:
    """Return the tokens read according to a response, or 0."""
    meta = answer.get("meta")
    billed: Any = meta.get("billed_units") if isinstance(meta, dict) else None
    for told in (answer.get("usage"), billed):
        for name in ("total_tokens", "prompt_tokens", "input_tokens") if isinstance(told, dict) else ():
            if type(told.get(name)) in (int, float) and told[name] >= 0:
                return int(told[name])
    return 0


def hosted_identity(name: str, spec: EmbedderSettings) -> str:
    """Return the identity of a service's vectors for an index, which changes when they would. Key and price
    do not count.
    """
    names = (
        "model dimensions query_prefix document_prefix query_type document_type query_fields document_fields"
    )
    used = [spec.kind, address(spec, f"[embedders.{name}]"), *(getattr(spec, one) for one in names.split())]
    digest = hashlib.sha256(json.dumps(used, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return f"{spec.model}@{digest}"
