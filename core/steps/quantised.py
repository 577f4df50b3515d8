"""Search in two passes: over coded vectors, then exactly over the few that those found."""

from __future__ import annotations

import numpy as np

from core.backends.base import Vector
from core.backends.quantised import Kind
from core.domain.outputs import Rerank as Reordered
from core.domain.outputs import Reranked, Search
from core.domain.types import Hit, Ranking
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step


class Quantised(Retrieve):
    """Both passes as traced steps."""

    @step("RETRIEVER", "search coded vectors", returns=Ranking)
    def coded(self, vector: Vector, kind: Kind, k: int) -> Ranking:
        """Return the `k` passages whose codes are nearest to `vector`; see `core.backends.quantised`."""
        where = self.context.where
        found, size = self.context.corpus.search_coded(vector, kind, k, where)
        self.span.attributes["bytes of codes"] = size
        self.span.output = Search(codes=kind, where=where)
        return found

    @step("RERANKER", "score by exact inner product", returns=Ranking)
    def exactly(self, vector: Vector, first: Ranking, k: int = POOL) -> Ranking:
        """Return the `k` of `first` with the highest inner product with `vector`; ties break by id."""
        scores = (self.vectors_of(first) @ np.asarray(vector)).tolist()
        order = sorted(range(len(first)), key=lambda at: (-scores[at], first[at].passage.id))[:k]
        self.span.output = Reordered(
            "exact inner product",
            tuple(Reranked(first[at].passage.id, at + 1, first[at].score, scores[at]) for at in order),
            scored=len(first),
        )
        return tuple(Hit(first[at].passage, scores[at]) for at in order)
