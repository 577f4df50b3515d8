"""A reranker behind `POST /rerank`, as Cohere, Jina, vLLM, llama.cpp and TEI serve it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from core.backends.address import split
from core.backends.llm.client import run_call
from core.backends.llm.wire import Words, parsed
from core.backends.weights import clean
from core.domain.errors import BadInput, ModelFailed
from core.domain.text import searchable
from core.domain.types import Passage

if TYPE_CHECKING:
    import httpx2

Field = Literal["documents", "texts"]  # what the passages are called: by all others, by TEI
AT_ONCE: dict[Field, int] = {"documents": 100, "texts": 32}  # TEI refuses more than 32 unless told otherwise
PATHS = ("/rerank", "/reranking")
HINTS = {
    401: "refused the key (401)",
    403: "refuses access with this key (403)",
    404: "knows no such address or model (404)",
    413: "finds the passages too long or too many (413)",
    429: "is asked too often or the quota is used up (429)",
}


class HttpReranker:
    """One endpoint, one model, any number of threads; nothing is imported or opened before the first call.

    Both dialects are spoken: {"model", "query", "documents", "top_n"} is answered by {"results": [{"index",
    "relevance_score"}]}; a server that asks for "texts" instead (TEI) gets them, and answers with a bare
    [{"index", "score"}].
    """

    needs_llm = False

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
        self._model, self._key, self._private = model, key, private
        self._words = Words(self.name, (key, *secrets))
        self._field: Field = "documents"
        self._client: httpx2.AsyncClient | None = None

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage, in the order given; a failed call is never repeated."""
        texts = [clean(searchable(passage.title, passage.text)) for passage in passages]
        if not texts:
            return []
        return run_call(self._score(clean(text), texts), self.name, timeout, cancel or threading.Event())

    async def _score(self, query: str, texts: list[str]) -> list[float]:
        scores: list[float] = []
        while len(scores) < len(texts):
            field = self._field
            some = texts[len(scores) : len(scores) + AT_ONCE[field]]
            status, data = await self._post(self._body(query, some, field))
            if field == "documents" and status in (400, 422) and b"texts" in data:
                self._field = "texts"
                continue
            if status != 200:
                raise self._refusal(status, data)
            scores += read(data, len(some), self._words)
        return scores

    def _body(self, query: str, texts: list[str], field: Field) -> dict[str, Any]:
        if field == "texts":  # without truncation TEI refuses a whole batch for one long passage
            return {"query": query, "texts": texts, "truncate": True}
        model = {"model": self._model} if self._model else {}
        return {**model, "query": query, "documents": texts, "top_n": len(texts)}

    async def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        import httpx2

        from core.backends.llm.transport import unreachable

        try:
            answer = await self._open().post(
                self.url, content=json.dumps(body).encode(), headers={"content-type": "application/json"}
            )
        except httpx2.HTTPError as error:
            raise self._words.failed(unreachable(error, self._words)) from None
        return answer.status_code, answer.content

    def _open(self) -> httpx2.AsyncClient:
        """The client, made on the loop's thread; a call ends by its own deadline, so reads have none."""
        if self._client is None:
            from core.backends.llm.transport import client

            self._client = client(self._key, private=self._private)
        return self._client

    def _refusal(self, status: int, data: bytes) -> ModelFailed:
        if 300 <= status < 400:
            return self._words.failed(f"redirects elsewhere ({status}), which is not followed")
        return self._words.failed(HINTS.get(status, f"answered with status {status}"), data)


def endpoint(url: str) -> str:
    """The address to post to, fit to be shown. Raises BadInput, which repeats no part that may be secret."""
    wrong = "a reranker's address is http://host:port/rerank or https://host/v1/rerank"
    origin, path = split(url, wrong, "user, password or query: set the key separately")
    return f"{origin}{path}" if path.endswith(PATHS) else f"{origin}{path}/rerank"


def read(data: bytes, count: int, words: Words) -> list[float]:
    """The scores of `count` passages in a response body. Raises ModelFailed unless each has exactly one."""
    answer = parsed(data, words, "is the address right?")
    results = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise words.failed("answered without results", data)
    scores: dict[int, float] = {}
    for result in results:
        index, score = _entry(result)
        if index is None or score is None:
            raise words.failed("gave a result without an index and a finite score", json.dumps(result))
        if not 0 <= index < count:
            raise words.failed(f"scored passage {index}, but was sent 0 to {count - 1}")
        if index in scores:
            raise words.failed(f"scored passage {index} twice")
        scores[index] = score
    if missing := [index for index in range(count) if index not in scores]:
        raise words.failed(f"left {len(missing)} of {count} passages without a score (first: {missing[0]})")
    return [scores[index] for index in range(count)]


def _entry(result: Any) -> tuple[int | None, float | None]:
    """Index and score of one result, None for what is not usable."""
    if not isinstance(result, dict):
        return None, None
    index, score = result.get("index"), result.get("relevance_score", result.get("score"))
    number = float(score) if isinstance(score, int | float) and type(score) is not bool else math.nan
    return (index if type(index) is int else None), (number if math.isfinite(number) else None)
