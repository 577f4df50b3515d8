"""A reranking that also asks how close together the question's words stand in a passage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.backends.rerankers import EMBEDDED
from core.backends.rerankers.proximity import pair_scores, parts
from core.domain.text import searchable
from core.domain.types import Ranking
from core.steps.rerank import RerankSteps
from core.steps.step import step


class Proximity(RerankSteps):
    """The embedded blend with pairs of words and the best window of each passage."""

    def rerank_proximity(self, text: str, hits: Ranking, candidates: int) -> Ranking:
        """Rerank the first `candidates` hits by proximity, then append the rest in their order; see
        `rerank`.
        """
        if hits:
            self._open(EMBEDDED)
        first = self._rerank_proximity(text, hits[:candidates])
        return self.append(first, hits) if len(hits) > len(first) else first

    @step("RERANKER", "rerank by BM25 with word pairs, cosine and MaxSim", returns=Ranking)
    def _rerank_proximity(self, text: str, hits: Ranking) -> Ranking:
        """Rank by the sum of `core.backends.rerankers.proximity.parts`; ties keep their order. If token
        vectors are not prepared, only the first `READ_NOW` are ranked.
        """
        if not hits:
            return self._nothing()
        hits = self._read_now(hits)
        corpus = self.context.corpus
        found = self._blended(text, hits, *self._nearest_pieces(text, hits), windows=True)
        cut = corpus.analyzer.terms
        texts = [cut(searchable(hit.passage.title, hit.passage.text)) for hit in hits]
        raw = {**found.raw, "pairs": pair_scores(corpus.terms(text), texts)}
        shares = parts(raw)
        scores = np.sum(list(shares.values()), axis=0)
        blended = replace(found, scores=scores, raw=raw, parts=shares)
        return self._by_parts(hits, blended, "BM25 with word pairs + cosine + MaxSim weighted by IDF")
