"""Stored web pages instead of a live web search, labelled as such."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from core.backends.base import Embedder
from core.corpus.corpus import Corpus
from core.domain.fusion import rrf
from core.domain.types import Passage


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
