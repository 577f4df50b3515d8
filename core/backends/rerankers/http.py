"""A reranker behind `POST /rerank`, as Cohere, Jina, Voyage, vLLM, llama.cpp and TEI serve it."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal

from core.backends.endpoint import Endpoint
from core.backends.llm.wire import EndpointWords, parsed
from core.backends.weights import clean
from core.domain.errors import BadInput
from core.domain.reach import split
from core.domain.text import searchable
from core.domain.types import Passage

# What a request holds: Cohere's fields, which most servers take, Voyage's, or TEI's.
Dialect = Literal["top_n", "top_k", "texts"]
AT_ONCE: dict[Dialect, int] = {"top_n": 100, "top_k": 100, "texts": 32}  # TEI's usual limit
PATHS = ("/rerank", "/reranking")
VOYAGE = ("voyageai.com", "ai.mongodb.com")


class HttpReranker:
    """One endpoint, one model, any number of threads; nothing is imported or opened before the first call.

    Three dialects are spoken: {"model", "query", "documents", "top_n"} is answered by {"results": [{"index",
    "relevance_score"}]}; Voyage takes "top_k" and answers in "data"; a server that asks for "texts" (TEI)
    answers with a bare [{"index", "score"}]. Which one, the first refusal tells.
    """

    share = 1.0

    def __init__(
        self, url: str, *, model: str = "", key: str = "", private: bool = True, secrets: Sequence[str] = ()
    ) -> None:
        """`url` is the server's address, with or without /rerank at its end; raises BadInput for others.

        `private`: whether it may be on this machine or its own network. `secrets` are taken out of what it
        says, as `key` is.
        """
        self.url = endpoint(url)
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise BadInput("the reranker's key contains invalid characters; enter it as it was issued")
        self.name = f"{model or 'reranker'} at {self.url}"
        self._model = model
        self._words = EndpointWords(self.name, (key, *secrets))
        self._endpoint = Endpoint(self.url, self._words, key=key, private=private)
        self._dialect: Dialect = "top_k" if any(host in self.url for host in VOYAGE) else "top_n"

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage, in the order given; what is temporary is tried again within `timeout`."""
        texts = [clean(searchable(passage.title, passage.text)) for passage in passages]
        query, end = clean(text), time.monotonic() + timeout
        scores: list[float] = []
        while len(scores) < len(texts):
            dialect = self._dialect
            some = texts[len(scores) : len(scores) + AT_ONCE[dialect]]
            body: dict[str, Any] = {"query": query, "texts": some, "truncate": True}
            if dialect != "texts":  # without truncation TEI refuses a whole batch for one long passage
                model = {"model": self._model} if self._model else {}
                body = {**model, "query": query, "documents": some, dialect: len(some)}
            left = max(0.01, end - time.monotonic())
            reply = self._endpoint.post(body, timeout=left, cancel=cancel or threading.Event())
            if dialect == "top_n" and reply.status in (400, 422):
                if b"texts" in reply.data:
                    self._dialect = "texts"
                    continue
                if b"top_n" in reply.data or b"top_k" in reply.data:
                    self._dialect = "top_k"
                    continue
            if reply.status != 200:
                raise self._endpoint.refusal(reply)
            scores += read(reply.data, len(some), self._words)
        return scores


def endpoint(url: str) -> str:
    """Return the URL to post to, safe to show. Raises BadInput, which repeats no possibly secret part."""
    wrong = "a reranker's address is http://host:port/rerank or https://host/v1/rerank"
    origin, path = split(url, wrong, "user, password or query: set the key separately")
    return f"{origin}{path}" if path.endswith(PATHS) else f"{origin}{path}/rerank"


def read(data: bytes, count: int, words: EndpointWords) -> list[float]:
    """Return the scores of `count` passages in a response body. Raises ModelFailed unless each has exactly
    one.
    """
    answer = parsed(data, words, "is the address right?")
    results = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise words.failed("answered without results", data)
    scores: dict[int, float] = {}
    for result in results:
        found: dict[str, Any] = result if isinstance(result, dict) else {}
        index: Any = found.get("index")
        score: Any = found.get("relevance_score", found.get("score"))
        if type(index) is not int or type(score) not in (int, float) or not math.isfinite(score):
            raise words.failed("gave a result without an index and a finite score", json.dumps(result))
        scores[index] = float(score)
    if sorted(scores) != list(range(count)) or len(results) != count:
        given = f"{len(results)} scores, of {len(scores)} passages"
        raise words.failed(f"gave {given}; wanted one of each of 0 to {count - 1}")
    return [scores[index] for index in range(count)]
