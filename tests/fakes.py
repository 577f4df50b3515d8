"""Small stand-ins for backends: deterministic, in memory, and never used outside tests."""

from __future__ import annotations

import hashlib
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.engine import Engine
from core.errors import BadInput, Cancelled, ModelTimedOut, Unavailable
from core.settings import Settings
from core.types import Hit, Passage


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class HashEmbedder:
    """A bag of hashed words: texts that share words are close."""

    name, dim = "hash", 64

    def __init__(self) -> None:
        self.calls: list[str] = []

    def embed_query(self, text: str) -> np.ndarray:
        self.calls.append(text)
        return self.embed([text])[0]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        out = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                out[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dim] += 1
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


class MemoryCorpus:
    """Brute-force search over a few passages, with the interface of an opened corpus."""

    def __init__(self, texts: Mapping[str, str], name: str = "tiny") -> None:
        self.name, self.fingerprint = name, hashlib.md5(repr(sorted(texts.items())).encode()).hexdigest()
        self.all = [
            Passage(id, id.split(":")[0], id.title(), text, 0, len(text))
            for id, text in sorted(texts.items())
        ]
        self.size = len(self.all)
        self.embedder = HashEmbedder()
        self.matrix = (
            self.embedder.embed([p.text for p in self.all]) if self.all else np.zeros((0, 64), np.float32)
        )
        self.info = SimpleNamespace(
            embedder="hash", vector_index="flat", passages=self.size, documents=self.size
        )
        self.searches: list[str] = []

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        known = {p.id: p for p in self.all}
        return {id: known[id] for id in ids if id in known}

    def row(self, id: str) -> int:
        rows = {p.id: row for row, p in enumerate(self.all)}
        if id not in rows:
            raise BadInput(f"corpus {self.name} has no passage {id!r}")
        return rows[id]

    def vectors(self, rows: Sequence[int]) -> np.ndarray:
        return self.matrix[list(rows)]

    def search_sparse(self, text: str, k: int, engine: str = "bm25s") -> tuple[Hit, ...]:
        self.searches.append(text)
        frequency = Counter(word for p in self.all for word in set(words(p.text)))
        asked = set(words(text))
        scores = [
            sum(math.log(1 + self.size / frequency[w]) for w in words(p.text) if w in asked) for p in self.all
        ]
        return self._top(scores, k, floor=0.0)

    def search_dense(self, vector: np.ndarray, k: int) -> tuple[Hit, ...]:
        return self._top([float(s) for s in self.matrix @ vector], k, floor=-2.0)

    def search_dense_many(self, vectors: np.ndarray, k: int) -> list[tuple[Hit, ...]]:
        return [self.search_dense(vector, k) for vector in vectors]

    def _top(self, scores: list[float], k: int, floor: float) -> tuple[Hit, ...]:
        hits = [Hit(p, s) for p, s in zip(self.all, scores, strict=True) if s > floor]
        return tuple(sorted(hits, key=lambda h: (-h.score, h.passage.id))[:k])


Reply = str | Exception | Callable[[LLMRequest], str]


@dataclass
class ScriptedLLM:
    """Answers by the prompt's name: a text, an exception to raise, or a function of the request."""

    replies: Mapping[str, Reply] = field(default_factory=dict)
    delay: float = 0.0
    local: bool = True
    model: str = "scripted"
    endpoint: str = "test"
    missing: str | None = None
    requests: list[LLMRequest] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def status(self) -> str | None:
        return self.missing

    def complete(self, request: LLMRequest, *, timeout: float, cancel: threading.Event) -> Completion:
        if self.missing:
            raise Unavailable(self.missing)
        with self.lock:
            self.requests.append(request)
        began = time.perf_counter()
        if self.delay and cancel.wait(min(self.delay, timeout)):
            raise Cancelled("stopped by the user")
        if self.delay > timeout:
            raise ModelTimedOut(f"no answer within {timeout:g} s")
        reply = self.replies.get(
            request.prompt, self.replies.get(request.prompt.split("/")[0], "an answer of five words")
        )
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else reply(request)
        logprobs: tuple[TokenLogprob, ...] = ()
        if request.top_logprobs:
            yes = float(text)
            pair = (("Yes", math.log(max(yes, 1e-9))), (" no", math.log(max(1 - yes, 1e-9))))
            logprobs = (TokenLogprob("Yes", pair[0][1], pair),)
            text = "Yes" if yes > 0.5 else "No"
        ms = (time.perf_counter() - began) * 1000
        return Completion(text, self.model, "stop", ms, 10, 5, 0, logprobs)


TEXTS = {
    "returns:0-90": "To send something back ask for a Return Merchandise Authorization within 30 days.",
    "returns:90-180": "The refund is paid five business days after the returned item was inspected.",
    "fragile:0-80": "Fragile items are double boxed and take one more business day by standard shipping.",
    "express:0-80": "Express shipping delivers the next business day in Germany and Belgium.",
    "customs:0-80": "Customs may hold a parcel until the commercial invoice has been supplied.",
    "keys:0-80": "Idempotency keys are stored for 24 hours with the response of the first attempt.",
    "crushed:0-80": "If the box arrived crushed take photos of all six sides and report it within 48 hours.",
}


class FakeEngine(Engine):
    """The real engine over in-memory backends."""

    def __init__(
        self,
        home: Path,
        *,
        llm: ScriptedLLM | None = None,
        texts: Mapping[str, str] = TEXTS,
        web: Mapping[str, str] | None = None,
        store: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(Settings(home=home, **settings), store)
        self.fake_llm = llm or ScriptedLLM()
        self.fakes = {"tiny": MemoryCorpus(texts)}
        if web is not None:
            self.fakes["web"] = MemoryCorpus(web, "web")

    def llm(self) -> Any:
        return self.fake_llm

    def embedder(self, name: str) -> Any:
        return self.fakes["tiny"].embedder

    def corpus(self, name: str) -> Any:
        if name not in self.fakes:
            raise Unavailable(f"corpus {name!r} is not built")
        return self.fakes[name]
