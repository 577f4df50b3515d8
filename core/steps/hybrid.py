"""Fusion of BM25 and dense search on scores that need no normalising."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.backends.base import Vector
from core.corpus.types import UNMEASURED
from core.domain.outputs import Rerank, Reranked
from core.domain.types import Hit, Ranking
from core.steps.fuse import Fuse
from core.steps.retrieve import Retrieve
from core.steps.step import step

FusedBy = Literal["auto", "min_max", "rrf"]


class Hybrid(Retrieve, Fuse):
    """BM25 and dense search, fused."""

    def hybrid(self, text: str, fused_by: FusedBy = "auto", weight: float | None = None) -> Ranking:
        """Search by BM25 and dense, and fuse: "auto" adds absolute scores, the cosine by `weight` (None: as
        the corpus was measured to need), "min_max" normalised scores, "rrf" reciprocal ranks.

        With "auto" both score every passage that either found: BM25 as a share of the question's summed IDF,
        dense by the cosine.
        """
        if fused_by != "auto":
            lists = (self.sparse(text), self.dense(text))
            return self.rrf(lists) if fused_by == "rrf" else self.linear(lists)
        vector = self.embed(text)
        lists = (self.sparse(text), self.nearest(vector))
        both = (self.score_words(text, lists), self.score_vectors(vector, lists))
        dense = self.dense_weight if weight is None else weight
        return self.linear(both, (1 - dense, dense), "none")

    @property
    def dense_weight(self) -> float:
        """Return the weight of the cosine that the corpus was measured to need."""
        measured = self.context.corpus.info.dense_weight
        return measured.weight if measured is not None else UNMEASURED

    @step("RERANKER", "score by BM25", returns=Ranking)
    def score_words(self, text: str, lists: tuple[Ranking, ...]) -> Ranking:
        """Score every passage of `lists` by BM25, as a share of the summed IDF of the question's terms."""
        found = _united(lists)
        rows = [self.context.corpus.row(id) for id in found]
        idf = sum(weight for _, weight in self.context.corpus.terms(text)) or 1.0
        scores = (self.context.corpus.bm25(text, rows) / idf).tolist() if rows else []
        return self._scored("BM25 by summed IDF", found, scores)

    @step("RERANKER", "score by cosine", returns=Ranking)
    def score_vectors(self, vector: Vector, lists: tuple[Ranking, ...]) -> Ranking:
        """Score every passage of `lists` by its cosine with the question."""
        found = _united(lists)
        rows = [self.context.corpus.row(id) for id in found]
        scores = (self.context.corpus.vectors(rows) @ vector).tolist() if rows else []
        return self._scored("cosine", found, scores)

    def _scored(self, by: str, found: dict[str, Hit], scores: Sequence[float]) -> Ranking:
        new = dict(zip(found, scores, strict=True))
        was = {id: place for place, id in enumerate(found, 1)}
        order = sorted(found, key=lambda id: (-new[id], id))
        self.span.output = Rerank(
            by,
            tuple(Reranked(id, was[id], found[id].score, new[id]) for id in order),
            scored=len(order),
        )
        return tuple(Hit(found[id].passage, new[id]) for id in order)


def _united(lists: Sequence[Ranking]) -> dict[str, Hit]:
    found: dict[str, Hit] = {}
    for ranking in lists:
        for hit in ranking:
            found.setdefault(hit.passage.id, hit)
    return found
