"""Web search: a live one, or the local snapshot, named as what it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.backends.base import Embedder, WebSearch
from core.domain.types import Passage

if TYPE_CHECKING:
    from core.corpus.index import Corpus
    from core.domain.settings import Settings

SNAPSHOT, NONE = "snapshot", "none"  # the settings that are no address
HOW = (
    "set web_search (ROUTESCOPE_WEB_SEARCH) to the address of a SearXNG instance that answers in JSON, or to"
    f" {SNAPSHOT} for stored pages (python -m core index web)"
)


def load_web(settings: Settings, snapshot: Callable[[], WebSearch]) -> WebSearch | None:
    """The web search of the settings; None where none is wanted.

    Raises BadInput for an address that is none, and what `snapshot` raises where that is what is set.
    """
    chosen = settings.web_search
    if chosen == NONE:
        return None
    if chosen == SNAPSHOT:
        return snapshot()
    from core.backends.searxng import Searxng

    return Searxng(chosen, private=settings.private("web_search"), secrets=settings.secrets())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hybrid search over a small corpus of stored pages that stands in for the web."""

    corpus: Corpus
    embedder: Embedder

    @property
    def label(self) -> str:
        """How results are to be labelled."""
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
        from core.steps.fuse import rrf  # steps import this module

        lists = (
            self.corpus.search_sparse(text, 50),
            self.corpus.search_dense(self.embedder.embed_query(text), 50),
        )
        return [(replace(hit.passage, id=f"web/{hit.passage.id}"), hit.score) for hit in rrf(lists)[:k]]
