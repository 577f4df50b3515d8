"""Small stand-ins for backends: deterministic, in memory, and never used outside tests."""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from core.backends import fusion_weights
from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.backends.fid import FusedReading
from core.backends.fusion_weights import FittedWeights
from core.backends.grep import SourceText
from core.backends.late import TokenVectors
from core.backends.llm.cache import CompletionCache
from core.backends.llm.model import CachedLLM
from core.backends.llm.recordings import Recordings
from core.backends.rerankers import Rerankers
from core.backends.sql import Database
from core.backends.terms import Analyzer
from core.backends.vector import QuantisedIndex
from core.corpus.chunk import WHOLE
from core.corpus.enrichments import store
from core.corpus.enrichments.learned import LearnedSparse
from core.corpus.enrichments.tokens import Tokens
from core.corpus.metadata import Metadata
from core.corpus.passage_matching import Matcher
from core.corpus.passages import Listed
from core.corpus.source import Source
from core.corpus.types import Document
from core.domain.errors import BadInput, Cancelled, ModelTimedOut, RouteScopeError, Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.text import searchable
from core.domain.types import Hit, Passage
from core.engine.engine import Engine
from tests.reflecting import ScriptedReflection


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=100_000)
def _number(word: str) -> int:
    return int(hashlib.md5(word.encode()).hexdigest(), 16)


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
                out[row, _number(word) % self.dim] += 1
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


class HashTokens:
    """A vector for each word, by its hash: equal words are alike, others hardly."""

    name, dim = "hash tokens", 16

    def __init__(self) -> None:
        self.read: list[str] = []

    def embed_query(self, text: str) -> TokenVectors:
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.read += texts
        return [TokenVectors(tuple(words(text)), self._vectors(words(text))) for text in texts]

    def _vectors(self, tokens: Sequence[str]) -> np.ndarray:
        digests = [hashlib.sha256(token.encode("utf-8", "replace")).digest()[: self.dim] for token in tokens]
        rows = np.array([list(digest) for digest in digests], np.float32).reshape(-1, self.dim) - 127.5
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class HashTerms:
    """A learned sparse encoder of 61 terms: each word weighs 1 in its own, and 0.25 in the next."""

    name, terms = "hash terms", [f"term{at}" for at in range(61)]

    def encode(self, texts: Sequence[str]) -> Any:
        from scipy.sparse import csr_matrix

        out = np.zeros((len(texts), len(self.terms)), np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                at = _number(word) % len(self.terms)
                out[row, at] += 1
                out[row, (at + 1) % len(self.terms)] += 0.25
        return csr_matrix(out)

    def encode_query(self, text: str) -> Any:
        return self.encode([text])

    def expansion(self, text: str) -> list[tuple[str, float]]:
        raise NotImplementedError


class Reader:
    """Copies the first words of the passage that shares most words with the question, and looks at it."""

    name = "fake reader"

    def read(self, text: str, passages: Sequence[Passage], *, max_tokens: int, **_: Any) -> FusedReading:
        shared = [1 + len({*words(text)} & {*words(p.text)}) for p in passages]
        best = passages[shared.index(max(shared))]
        said = " ".join(words(best.text)[:6])
        return FusedReading(said, tuple(n / sum(shared) for n in shared), 10 * len(passages), 6)


def _pretend(kind: Any, setting: str, fake: Any) -> None:
    """A model by the fake's name is the fake; any other is loaded as ever."""
    load = store.RECIPES[kind.name]._load
    store.RECIPES[kind.name] = kind(
        lambda settings: fake() if getattr(settings, setting) == fake.name else load(settings)
    )


_pretend(Tokens, "late_model", HashTokens)
_pretend(LearnedSparse, "sparse_model", HashTerms)


class MemoryCorpus:
    """Brute-force search over a few passages, with the interface of an opened corpus."""

    warnings: tuple[str, ...] = ()
    chosen, by = True, ""

    def __init__(
        self, texts: Mapping[str, str], name: str = "tiny", titles: Mapping[str, str] | None = None
    ) -> None:
        self.base = self
        self.name, self.fingerprint = name, hashlib.md5(repr(sorted(texts.items())).encode()).hexdigest()
        self.all = [
            Passage(
                id, id.split(":")[0], (titles or {}).get(id.split(":")[0], id.title()), text, 0, len(text)
            )
            for id, text in sorted(texts.items())
        ]
        self.size = len(self.all)
        self.embedder = HashEmbedder()
        self.matrix = (
            self.embedder.embed([p.text for p in self.all]) if self.all else np.zeros((0, 64), np.float32)
        )
        self.info = SimpleNamespace(
            embedder="hash",
            embedder_identity="hash",
            language="english",
            vector_index="flat",
            passages=self.size,
            documents=self.size,
            languages={},
            unclear=self.size,
            foreign=0,
            unread=None,
            dense_weight=None,
        )
        self.searches: list[str] = []
        self.meta: dict[str, dict[str, str]] = {}
        self.characters = sum(len(one.text) for one in self.all)
        self.analyzer = Analyzer("none")

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        return [self.all[row] for row in rows]

    def everything(self) -> list[tuple[int, Passage, Mapping[str, str]]]:
        return [(row, passage, {}) for row, passage in enumerate(self.all)]

    @property
    def source_text(self) -> SourceText:
        return SourceText(searchable(passage.title, passage.text) for passage in self.all)

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        known = {p.id: p for p in self.all}
        return {id: known[id] for id in ids if id in known}

    def document(self, id: str) -> tuple[Document, list[Passage]]:
        own = [p for p in self.all if p.doc_id == id]
        text = [" "] * max((p.start + len(p.text) for p in own), default=0)
        for passage in own:
            text[passage.start : passage.start + len(passage.text)] = passage.text
        return Document(id, id, "".join(text)), own

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        ids = sorted({p.doc_id for p in self.all if holding.lower() in p.doc_id.lower()})
        return [Listed(id, id, 1, 1) for id in ids if id > after][:limit]

    def has_document(self, id: str) -> bool:
        return any(p.doc_id == id for p in self.all)

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        return [p for p in self.all if p.doc_id == document and p.start < end and p.end > start]

    @cached_property
    def matcher(self) -> Matcher:
        return Matcher(self)

    def row(self, id: str) -> int:
        rows = {p.id: row for row, p in enumerate(self.all)}
        if id not in rows:
            raise BadInput(f"corpus {self.name} has no passage {id!r}")
        return rows[id]

    def vectors(self, rows: Sequence[int]) -> np.ndarray:
        return self.matrix[list(rows)]

    def bm25(self, text: str, rows: Sequence[int]) -> np.ndarray:
        found = {hit.passage.id: hit.score for hit in self.search_sparse(text, self.size)}
        return np.array([found.get(self.all[row].id, 0.0) for row in rows], np.float32)

    def search_terms(self, asked: Mapping[str, float], k: int, told: int = 0, where=()):
        hits, parts = [], {}
        for passage in self._met(where):
            own = words(passage.text)
            part = {term: weight * own.count(term) for term, weight in asked.items() if term in own}
            if part:
                hits.append(Hit(passage, sum(part.values())))
                parts[passage.id] = sorted(part.items(), key=lambda one: (-one[1], one[0]))
        hits = sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k]
        return tuple(hits), [(hit.passage.id, parts[hit.passage.id]) for hit in hits[:told]]

    def search_coded(self, vector, kind, k, where=()):
        index = QuantisedIndex([self.matrix] if self.size else [], 64, kind)
        found = index.search(vector, k, self.allowed(where))
        return tuple(Hit(self.all[row], score) for row, score in found), index.bytes

    @cached_property
    def metadata(self):
        """Of each passage's document: what `meta` says, and what stands at the top of its text."""
        return Metadata((p.doc_id, self.meta.get(p.doc_id, {}), p.text) for p in self.all)

    def allowed(self, where):
        return self.metadata.meeting(where) if where else None

    def value(self, id, field):
        return self.metadata.value(self.row(id), field)

    def days(self, field):
        return self.metadata.days(field)

    def _met(self, where):
        mask = self.allowed(where)
        return [p for at, p in enumerate(self.all) if mask is None or mask[at]]

    def bm25_place(self, text: str, passage_id: str) -> tuple[int, int]:
        ids = [hit.passage.id for hit in self.search_sparse(text, self.size)]
        return (ids.index(passage_id) + 1 if passage_id in ids else 0), len(ids)

    def terms(self, text: str) -> list[tuple[str, float]]:
        return list(zip(words(text), self.idf(words(text)), strict=True))

    def idf(self, asked: Sequence[str]) -> list[float]:
        having = [set(words(p.text)) for p in self.all]
        return [math.log(1 + self.size / (1 + sum(word in own for own in having))) for word in asked]

    def explain(self, text: str, passage_id: str) -> dict[str, float]:
        """What each word adds to the score that `search_sparse` gives for it."""
        inside = Counter(words(self.all[self.row(passage_id)].text))
        having = Counter(word for p in self.all for word in set(words(p.text)))
        return {w: inside[w] * math.log(1 + self.size / max(1, having[w])) for w in words(text)}

    def why_no_words(self, text):
        return f"no passage has any of its terms ({text})"

    def search_sparse(self, text: str, k: int, engine: str = "bm25s", where=()) -> tuple[Hit, ...]:
        self.searches.append(text)
        frequency = Counter(word for p in self.all for word in set(words(p.text)))
        asked = set(words(text))
        scores = [
            sum(math.log(1 + self.size / frequency[w]) for w in words(p.text) if w in asked) for p in self.all
        ]
        return self._top(scores, k, 0.0, where)

    def search_dense(
        self, vector: np.ndarray, k: int, where=(), *, exact: bool = False, effort: int = 0
    ) -> tuple[Hit, ...]:
        return self._top([float(s) for s in self.matrix @ vector], k, -2.0, where)

    def search_full_text(self, text: str, k: int, where=()) -> tuple[Hit, ...]:
        """How many of the words stand in it, whatever they are worth."""
        asked = set(words(text))
        return self._top([float(len(asked & set(words(p.text)))) for p in self.all], k, 0.0, where)

    def search_dense_many(self, vectors: np.ndarray, k: int, where=()) -> list[tuple[Hit, ...]]:
        return [self.search_dense(vector, k, where) for vector in vectors]

    def _top(self, scores: list[float], k: int, floor: float, where) -> tuple[Hit, ...]:
        met = {p.id for p in self._met(where)}
        hits = [Hit(p, s) for p, s in zip(self.all, scores, strict=True) if s > floor and p.id in met]
        return tuple(sorted(hits, key=lambda h: (-h.score, h.passage.id))[:k])


TokenProbabilities = Mapping[str, float]  # the probability of each first token
Reply = str | TokenProbabilities | Exception | Callable[[LLMRequest], "str | TokenProbabilities"]


class CutCorpus(MemoryCorpus):
    """Documents cut into the pieces [start, end); without any each document is one."""

    def __init__(
        self, texts: Mapping[str, str], pieces: Mapping[str, Sequence[tuple[int, int]]] | None = None
    ) -> None:
        super().__init__({}, "cut")
        self.texts = texts
        self.all = [
            Passage(f"{doc}:{start}-{end}", doc, "", texts[doc][start:end], start, end)
            for doc, text in texts.items()
            for start, end in (pieces[doc] if pieces else [(0, len(text))])
        ]

    def document(self, id: str) -> tuple[Document, list[Passage]]:
        if id not in self.texts:
            raise BadInput(f"corpus {self.name} has no document {id!r}")
        return Document(id, id, self.texts[id]), [p for p in self.all if p.doc_id == id]


@dataclass
class ScriptedLLM:
    """Answers by the prompt's name: a text, the odds of the first token, an exception to raise, or a function
    of the request. A text gets token probabilities where it is that of Yes, or where they must be given.
    """

    replies: Mapping[str, Reply] = field(default_factory=dict)
    delay: float = 0.0
    local: bool = True
    model: str = "scripted"
    endpoint: str = "test"
    missing: str | None = None
    identity: str = "scripted"
    requests: list[LLMRequest] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def status(self) -> str | None:
        return self.missing

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Any = None
    ) -> Completion:
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
        said = reply(request) if callable(reply) else reply
        text = said if isinstance(said, str) else max(said, key=lambda token: said[token])
        logprobs: tuple[TokenLogprob, ...] = ()
        if not isinstance(said, str):
            top = tuple((token, math.log(odds)) for token, odds in said.items() if odds > 0)
            logprobs = (TokenLogprob(text, dict(top)[text], top),) if request.top_logprobs else ()
        elif request.top_logprobs and re.fullmatch(r"[01]?\.\d+", text):
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


ORDERS = """
CREATE TABLE orders (order_no INTEGER PRIMARY KEY, status TEXT NOT NULL, total REAL);
CREATE TABLE items (order_no INTEGER REFERENCES orders (order_no), name TEXT, quantity INTEGER);
INSERT INTO orders VALUES (48291, 'held_at_customs', 40.5), (48292, 'shipped', 12), (48293, 'shipped', NULL);
INSERT INTO items VALUES (48291, 'vase', 2), (48291, 'lamp', 1), (48292, 'vase', 1);
"""


@cache
def shop(name: str) -> Database:
    connection = sqlite3.connect(":memory:")
    connection.executescript(ORDERS)
    return Database(connection.serialize(), name)


class FakeEngine(Engine):
    """The real engine over in-memory backends."""

    def __init__(
        self,
        home: Path,
        *,
        llm: ScriptedLLM | None = None,
        texts: Mapping[str, str] = TEXTS,
        titles: Mapping[str, str] | None = None,
        web: Mapping[str, str] | None = None,
        store: Any = None,
        **settings: Any,
    ) -> None:
        models = {"late_model": HashTokens.name, "sparse_model": HashTerms.name}
        super().__init__(Settings(home=home, **{**models, **settings}), store)
        self.fake_llm = llm or ScriptedLLM()
        self.fakes = {"tiny": MemoryCorpus(texts, titles=titles)}
        self.fake_reflection = ScriptedReflection()
        self.tokens = HashTokens()
        self.fake_rerankers = Rerankers(self.settings, lambda: self.tokens)
        if web is not None:
            self.fakes["web"] = MemoryCorpus(web, "web")

    def llm(self, mode: Any = None, name: str = "") -> Any:
        """The script itself, by any name, or, where a mode is asked for, behind a cache and recordings."""
        if mode is None:
            return self.fake_llm
        home = self.settings.home
        cache, recordings = (
            CompletionCache(home / "cache" / "answers.sqlite"),
            Recordings(home / "recordings"),
        )
        return CachedLLM(self.fake_llm, cache=cache, recordings=recordings, mode=mode)

    def fid(self) -> Any:
        return Reader()

    def reflection(self, mode: Any = None) -> Any:
        return self.fake_reflection

    def rerankers(self) -> Rerankers:
        return self.fake_rerankers

    def loading(self, name: str) -> Future[Any]:
        loaded: Future[Any] = Future()
        loaded.set_result(self.fakes["tiny"].embedder)
        return loaded

    def corpus(self, name: str) -> Any:
        if name not in self.fakes:
            raise Unavailable(f"corpus {name!r} is not built")
        return self.fakes[name]

    def opening(self, name: str) -> Future[Any]:
        """As `corpus`, which a test may have put another in place of, gives it."""
        opened: Future[Any] = Future()
        try:
            opened.set_result(self.corpus(name))
        except RouteScopeError as error:
            opened.set_exception(error)
        return opened

    def tables(self, corpus: str, need: Need) -> Database:
        """Small real ones, whatever the corpus."""
        return shop("shop.csv" if need is Need.CSV else "shop.sqlite")

    def weights(self, corpus: str, name: str = "") -> FittedWeights:
        """Those that a test fitted, else some that fuse every kind of list."""
        if corpus in self.fakes and not fusion_weights.names(self.settings.home, corpus) and not name:
            return some_weights(corpus, self.fakes[corpus].fingerprint)
        return super().weights(corpus, name)

    def enrichment(self, corpus: Any, need: Need) -> Any:
        """Really made, by a model of its own: what the route asks its model is not mixed with it.

        It is made once in this process for equal texts, unless the engine's own home has one.
        """
        name, now = need.enrichment or "", self.settings
        same = (
            name,
            corpus.name,
            corpus.fingerprint,
            type(corpus),
            type(corpus.embedder),
            now.late_model,
            now.late_bits,
            now.sparse_model,
        )
        writer = ScriptedLLM({"questions": _questions, "context": _context})
        with _making:
            if (now.home / "enrichments" / corpus.name / name).exists():
                store.build(name, corpus, settings=now, llm=writer, embedder=corpus.embedder)
                return super().enrichment(corpus, need)
            if same not in _made:
                there = now.model_copy(update={"home": Path(_kept.name) / str(len(_made))})
                store.build(name, corpus, settings=there, llm=writer, embedder=corpus.embedder)
                _made[same] = store.load(name, corpus, there)
            return _made[same]


_making, _made, _kept = threading.Lock(), dict[tuple[Any, ...], Any](), tempfile.TemporaryDirectory()


def some_weights(corpus: str = "tiny", fingerprint: str = "", name: str = "some") -> FittedWeights:
    """Weights as if they were fitted, of lists that need something made and of those that do not."""
    lists = ("bm25", "dense", "maxsim", "children", "learned_sparse")
    rows = tuple((1.0 + 0.25 * at, -0.125, 0.5) for at in range(len(lists)))
    return FittedWeights(name, corpus, fingerprint, lists, rows, -3.0, {"of": "a test"})


def _questions(request: LLMRequest) -> str:
    told = words(request.messages[-1].content.split("Passage from", 1)[-1])
    return "\n".join(f"{n}. What about {' '.join(told[n : n + 8])}?" for n in range(4))


def _context(request: LLMRequest) -> str:
    return f"From a handbook of {len(request.messages[-1].content)} letters."


def asked_by_commands(monkeypatch: Any, engine: FakeEngine) -> None:
    """Let commands in this process ask `engine` about its corpus "tiny" as if it were indexed."""
    monkeypatch.setattr("core.engine.engine.shared_engine", lambda: engine)
    monkeypatch.setattr("core.domain.settings.current", lambda: engine.settings)
    origin = Source("tiny", "indexed", None, WHOLE)
    monkeypatch.setattr("core.corpus.catalogue.source", lambda *_, **__: origin)
    monkeypatch.setattr("core.cli.corpora.ensure", lambda *_: None)
