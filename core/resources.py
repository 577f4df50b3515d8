"""The models, corpora and tools of one process, each opened when it is first asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from core.backends import fitted
from core.backends.fid import FusionReader, FusionReaders
from core.backends.rerankers import Rerankers
from core.corpus.tables import Tables
from core.enrich.opened import Opened
from core.request import Mode
from core.route import Need
from core.settings import Settings

if TYPE_CHECKING:
    from core.backends.base import LLM, Embedder, WebSearch
    from core.backends.llm import CachedLLM
    from core.backends.sql import Database
    from core.corpus.index import Corpus


class Resources:
    """What routes use, as the settings name it. Safe to call from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.RLock()
        self._corpora: dict[str, Corpus] = {}
        self._llm: CachedLLM | None = None
        self._reflection: CachedLLM | None = None
        self._embedders: dict[str, Embedder] = {}
        self._rerankers = Rerankers(settings)
        self._live_web: WebSearch | None = None
        self._fid = FusionReaders(settings)
        self._enrichments = Opened(settings)
        self._tables = Tables(settings)

    def llm(self, mode: Mode | None = None) -> LLM:
        """The configured model's client; made on first use, without starting anything. `mode` stands in for
        the setting `llm_mode`.
        """
        with self._lock:
            if self._llm is None:
                from core.backends.llm import load_llm

                self._llm = load_llm(self.settings)
            return self._llm if mode is None else self._llm.in_mode(mode)

    def reflection(self, mode: Mode | None = None) -> LLM:
        """The reflection-token model's client; raises Unavailable with the way to get one."""
        with self._lock:
            if self._reflection is None:
                from core.backends.llm import load_reflection

                self._reflection = load_reflection(self.settings)
            return self._reflection if mode is None else self._reflection.in_mode(mode)

    def embedder(self, name: str) -> Embedder:
        """The embedder a corpus was built with."""
        with self._lock:
            if name not in self._embedders:
                from core.backends.embedder import load_embedder

                self._embedders[name] = load_embedder(name, settings=self.settings)
            return self._embedders[name]

    def corpus(self, name: str) -> Corpus:
        """An opened corpus; opened again when its index was rebuilt meanwhile."""
        from core.corpus.index import current_fingerprint, open_corpus

        with self._lock:
            known = self._corpora.get(name)
            if known is None or known.fingerprint != current_fingerprint(name, settings=self.settings):
                known = open_corpus(name, settings=self.settings)
                # the first search of a process loads libraries and files: no route is to pay for that
                known.search_dense(self.embedder(known.info.embedder).embed_query("warm up"), 1)
                known.search_sparse("warm up", 1)
                self._corpora[name] = known
            return known

    def web(self) -> WebSearch | None:
        """The web search of the settings, None where none is wanted; raises Unavailable or BadInput."""
        from core.backends.web import Snapshot, load_web

        def snapshot() -> WebSearch:
            pages = self.corpus("web")
            return Snapshot(pages, self.embedder(pages.info.embedder))

        with self._lock:
            if self._live_web is None:
                found = load_web(self.settings, snapshot)
                if isinstance(found, Snapshot):  # its pages may be indexed again meanwhile
                    return found
                self._live_web = found
            return self._live_web

    def rerankers(self) -> Rerankers:
        """The rerankers of this process; none is loaded before it is used."""
        return self._rerankers

    def fid(self) -> FusionReader:
        """The Fusion-in-Decoder model of the settings, loaded when first asked for; raises Unavailable."""
        return self._fid.get()

    def enrichment(self, corpus: Corpus, need: Need) -> Any:
        """What was made for `corpus` to meet `need`; raises Unavailable with the way to get it."""
        return self._enrichments.get(corpus, need.enrichment or "")

    def weights(self, corpus: str, name: str = "") -> fitted.FittedWeights:
        """The weights fitted for a corpus, "" for the newest; raises Unavailable with the way to get some."""
        return fitted.read(self.settings.home, corpus, name)

    def tables(self, corpus: str, need: Need) -> Database:
        """The database (Need.TABLES) or the CSV files (Need.CSV) of a corpus; raises Unavailable."""
        return self._tables.get(corpus, need)
