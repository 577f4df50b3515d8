"""Web search: for now the local snapshot, named as what it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.backends.base import Embedder
from core.steps.fuse import rrf
from core.types import Passage

if TYPE_CHECKING:
    from core.corpus.index import Corpus


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hybrid search over a small corpus of stored pages that stands in for the web."""

    corpus: Corpus
    embedder: Embedder

    @property
    def label(self) -> str:
        """How results are to be labelled."""
        return "local snapshot, not a live web search"

    def search(self, text: str, k: int) -> list[tuple[Passage, float]]:
        """Up to `k` passages; ids begin with "web/" so that they cannot be taken for the corpus' own."""
        lists = (
            self.corpus.search_sparse(text, 50),
            self.corpus.search_dense(self.embedder.embed_query(text), 50),
        )
        return [(replace(hit.passage, id=f"web/{hit.passage.id}"), hit.score) for hit in rrf(lists)[:k]]
