"""The enrichments of a process: opened when they are first searched, and again when they were made anew."""

from __future__ import annotations

import threading
from typing import Any

from core.corpus.corpus import Corpus
from core.enrich import store
from core.settings import Settings


class Opened:
    """Safe to call from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[tuple[str, store.Made | None], Any]] = {}

    def get(self, corpus: Corpus, name: str) -> Any:
        """The enrichment `name` of a corpus; raises Unavailable with the way to get it."""
        # Of another state of the corpus, its rows would be those of other passages.
        wanted = corpus.fingerprint, store.describe(name, corpus.name, self._settings)
        with self._lock:
            state, opened = self._known.get((corpus.name, name), (None, None))
            if state != wanted:
                opened = store.load(name, corpus, self._settings)
                self._known[corpus.name, name] = wanted, opened
            return opened
