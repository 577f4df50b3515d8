"""The models, corpora and tools of one process, each opened when it is first asked for."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from core.backends import embedder as embedders
from core.backends import fusion_weights, llm
from core.backends.base import LLM, Embedder, WebSearch
from core.backends.cache_file import DiskCache
from core.backends.fid import HOW, FusionInDecoder
from core.backends.hosted_embedder import HostedEmbedder
from core.backends.llm import CachedLLM
from core.backends.rerankers import Rerankers
from core.backends.searxng import Searxng
from core.backends.sql import Database
from core.backends.web import NONE, SNAPSHOT
from core.corpus import catalogue, index
from core.corpus.corpus import Corpus
from core.corpus.enrichments.store import Opened
from core.corpus.tables import Tables
from core.domain.errors import Unavailable
from core.domain.external import parse_reply
from core.domain.fusion import rrf
from core.domain.needs import Need
from core.domain.once import Once
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine.request import Mode
from core.routes.registry import pipelines, use
from core.steps.base import ExternalCall, ExternalReply


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hybrid search over a small corpus of stored pages that stands in for the web."""

    corpus: Corpus
    embedder: Embedder

    @property
    def label(self) -> str:
        """Return the label of the results."""
        return "local snapshot, not a live web search"

    def search(
        self,
        text: str,
        k: int,
        *,
        timeout: float = 60.0,  # noqa: ARG002 - a search of a few pages takes milliseconds
        cancel: threading.Event | None = None,  # noqa: ARG002
    ) -> list[tuple[Passage, float]]:
        """Up to `k` passages; ids begin with "web/" so that they cannot be taken for the corpus' own."""

        lists = (
            self.corpus.search_sparse(text, 50),
            self.corpus.search_dense(self.embedder.embed_query(text), 50),
        )
        return [(replace(hit.passage, id=f"web/{hit.passage.id}"), hit.score) for hit in rrf(lists)[:k]]


REPLIES_BYTES = 256_000_000  # of the stored replies of pipelines
CORPORA = 16  # that stay open, the one used longest ago goes first: a large one takes gigabytes


class Resources:
    """The models, indexes and services that routes use, as configured. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        use(settings)
        self._corpora: Once[str, Corpus] = Once(CORPORA)
        self._further: Once[tuple[str, str], Corpus] = Once(CORPORA)  # with vectors of other embedders
        self._default_identity: str | None = None
        self._embedders: Once[str, Embedder] = Once()
        self._clients: Once[str, Any] = Once()  # of the models and the web, by what they are for
        self._rerankers = Rerankers(settings)
        self._readers: Once[str, FusionInDecoder] = Once()
        self._enrichments = Opened(settings)
        self._tables = Tables(settings)

    def llm(self, mode: Mode | None = None, name: str = "") -> LLM:
        """Return the client of the configured model, or of [models.`name`]; creating it starts nothing.
        `mode` replaces the setting `llm_mode`. Raises BadInput for an unknown name.
        """
        client: CachedLLM = self._clients.get(
            f"llm {name}", lambda: llm.load_llm(self.settings.with_model(name))
        )
        return client if mode is None else client.in_mode(mode)

    def reflection(self, mode: Mode | None = None) -> LLM:
        """Return the reflection-token model's client. Raises Unavailable with instructions if there is
        none.
        """
        client: CachedLLM = self._clients.get("reflection", lambda: llm.load_reflection(self.settings))
        return client if mode is None else client.in_mode(mode)

    def embedder(self, name: str) -> Embedder:
        """Wait for the embedder a corpus was built with, and return it."""
        return self.loading(name).result()

    def loading(self, name: str) -> Future[Embedder]:
        """`embedder` for those who need not wait: begins to load it, unless it is loaded."""
        return self._embedders.begin(name, lambda: self._load_embedder(name))

    def by_embedder(self, corpus: Corpus, embedder: str) -> Corpus:
        """Return the corpus with the vectors of `embedder`, "" for its own. Raises Unavailable if it has
        none.
        """
        if not embedder:
            if self._default_identity is None:
                self._default_identity = embedders.embedder_identity(self.settings.embedder, self.settings)
            if corpus.chosen or corpus.info.embedder_identity == self._default_identity:
                return corpus
        return self._further.get(
            (corpus.name, embedder),
            lambda: index.by_embedder(corpus, embedder, settings=self.settings),
            lambda known: known.base is corpus,
        )

    def embedder_of(self, corpus: Corpus) -> Embedder:
        """Return the embedder of an opened corpus, deferred while it loads, so that routes which embed
        nothing need not wait.
        """
        name = corpus.info.embedder
        loading = self.loading(name)
        if loading.done() and loading.exception() is None:
            return loading.result()
        return embedders.DeferredEmbedder(name, corpus.info.dim, lambda: self.loading(name))

    def _load_embedder(self, name: str) -> Embedder:
        loaded = embedders.load_embedder(name, settings=self.settings)
        if not isinstance(loaded, HostedEmbedder):  # a service is not asked before there is a question
            loaded.embed_query("warm up")  # no route is to pay for the first text of a process
        return loaded

    def corpus(self, name: str) -> Corpus:
        """Wait for an open corpus and return it; it is reopened if its index was rebuilt."""
        return self.opening(name).result()

    def opened(self, name: str) -> Corpus | None:
        """Return a corpus if it is open; never open it."""
        return self._corpora.there(name)

    def opening(self, name: str) -> Future[Corpus]:
        """`corpus` for those who need not wait: begins to open it, unless it is open."""
        return self._corpora.begin(
            name,
            lambda: self._open_corpus(name),
            lambda known: known.fingerprint == catalogue.current_fingerprint(name, settings=self.settings),
        )

    def _open_corpus(self, name: str) -> Corpus:
        opened = index.open_corpus(name, settings=self.settings)
        self.loading(opened.info.embedder)  # searches by words need not wait for it
        # the first search of a process loads libraries and files: no route is to pay for that
        if opened.size:
            opened.search_dense(opened.vectors([0])[0], 1)
        with suppress(Unavailable):  # a large table has no BM25: routes that need it say so
            opened.search_sparse("warm up", 1)
        return opened

    def web(self) -> WebSearch | None:
        """Return the configured web search, or None. Raises Unavailable or BadInput."""
        now = self.settings
        if now.web_search == NONE:
            return None
        if now.web_search == SNAPSHOT:  # its pages may be indexed again meanwhile
            return Snapshot(pages := self.corpus("web"), self.embedder_of(pages))
        private, secrets = now.private("web_search"), now.secrets()
        found: WebSearch | None = self._clients.get(
            "web", lambda: Searxng(now.web_search, private=private, secrets=secrets)
        )
        return found

    def rerankers(self) -> Rerankers:
        """Return the rerankers of this process, each loaded on first use."""
        return self._rerankers

    def fid(self) -> FusionInDecoder:
        """Return the configured Fusion-in-Decoder model, loaded on first use. Raises Unavailable."""
        name = self.settings.fid_model
        if not name:
            raise Unavailable(f"no Fusion-in-Decoder model is set: {HOW}")
        return self._readers.get(name, lambda: FusionInDecoder(name))

    def enrichment(self, corpus: Corpus, need: Need) -> Any:
        """Return the enrichment of `corpus` that meets `need`. Raises Unavailable with instructions."""
        return self._enrichments.get(corpus, need.enrichment or "")

    def weights(self, corpus: str, name: str = "") -> fusion_weights.FittedWeights:
        """Return the weights fitted for a corpus, "" for the newest. Raises Unavailable with instructions."""
        return fusion_weights.read(self.settings.home, corpus, name)

    def external(self, name: str, mode: Mode | None = None, run: str = "") -> ExternalCall:
        """Return the call of the external pipeline `name` in run `run`. Raises Unavailable if it does not
        exist.

        Each reply is stored; with mode "replay" (or the setting) the stored reply is read instead.
        """
        from core.backends.external import doors

        pipeline = pipelines().get(name)
        if pipeline is None:
            raise Unavailable(f"pipeline {name} is not set up")
        path, from_file = self.settings.home / "cache" / "replies.sqlite", pipeline.door == "file"
        replies = DiskCache(path, "replies of pipelines", REPLIES_BYTES)

        def ask(query: Query, k: int, seconds: float, cancel: threading.Event) -> ExternalReply:
            asked = doors.PipelineRequest(query.text, k, query.history, pipeline.filters, run)
            key = asked.key(pipeline)
            if (mode or self.settings.llm_mode) == "replay" and not from_file:
                if (found := replies.get([key]).get(key)) is None:
                    raise Unavailable(f"{pipeline.owner}: no reply to this question is stored; ask it live")
                stored = json.loads(found)
                reply = parse_reply(stored["text"], pipeline.owner)
                return ExternalReply(reply, stored["ms"], stored["inside_ms"], stored["made"])
            live = doors.live(pipeline, self.settings.secrets())
            called = live.ask(asked, timeout=seconds, cancel=cancel)
            if not from_file:
                made = datetime.now(UTC).isoformat(timespec="milliseconds")
                facts = {"text": called.text, "made": made, "ms": called.ms, "inside_ms": called.inside_ms}
                replies.put({key: json.dumps(facts).encode()})
            return ExternalReply(called.reply, called.ms, called.inside_ms)

        return ExternalCall(pipeline.door, pipeline.timeout_s, ask)

    def tables(self, corpus: str, need: Need) -> Database:
        """Return the database (Need.TABLES) or the CSV files (Need.CSV) of a corpus. Raises Unavailable."""
        return self._tables.get(corpus, need)
