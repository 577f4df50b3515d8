"""The enrichments of a process, opened on their first search and again after a rebuild."""

from __future__ import annotations

from typing import Any

from core.corpus.corpus import Corpus
from core.corpus.enrichments import store
from core.domain.once import Once
from core.domain.settings import Settings

State = tuple[str, object]  # of the corpus, and of what was made for it


class Opened:
    """Safe to call from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Once[tuple[str, str, str], tuple[State, Any]] = Once()

    def get(self, corpus: Corpus, name: str) -> Any:
        """Return the enrichment `name` of a corpus. Raises Unavailable with instructions."""
        corpus = store.own(name, corpus)
        # Of another state of the corpus, its rows would be those of other passages.
        wanted = corpus.fingerprint, store.stamp(name, corpus.name, self._settings, corpus.by)
        _, opened = self._known.get(
            (corpus.name, corpus.by, name),
            lambda: (wanted, store.load(name, corpus, self._settings)),
            lambda known: known[0] == wanted,
        )
        return opened
