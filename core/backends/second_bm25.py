"""BM25 a second time, computed by rank-bm25 when asked: to check the stored index against."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask, Rows
from core.backends.sparse import K1, B, mean_length, top_k
from core.backends.terms import Analyzer


class RankBM25Index:
    """Lucene's variant of BM25 on top of rank-bm25's ATIRE-like one. Thread-safe once built.

    Two differences are corrected: the idf is ln(1 + (N - n + 0.5) / (n + 0.5)) instead of the one that turns
    negative for terms in more than half of the passages, and the factor (k1 + 1) of every score is divided
    out. Term frequencies, lengths and the sum are rank-bm25's own. It holds the terms of all passages in
    memory and scans every passage for every term. Source: Kamphuis et al. 2020, "Which BM25 Do You Mean?",
    doi:10.1007/978-3-030-45442-5_4, table 1.
    """

    def __init__(self, texts: Iterable[str], analyzer: Analyzer, k1: float = K1, b: float = B) -> None:
        """Index `texts`, in row order."""
        documents = [analyzer.terms(text) for text in texts]
        self.size = len(documents)
        self._analyzer, self._scale = analyzer, k1 + 1
        # rank-bm25 divides by the mean length: it cannot hold passages none of which has a term
        self._index = _lucene(documents, k1, b) if any(documents) else None

    def search(self, text: str, k: int, allowed: Mask | None = None) -> Rows:
        """Return the `k` best rows for `text` among those `allowed` (None: all), ties by row."""
        return top_k(self.scores(text).astype(np.float32), k, allowed)

    def scores(self, text: str) -> NDArray[np.float64]:
        """Return the score of every passage, shape (size,)."""
        if self._index is None:
            return np.zeros(self.size)
        scores: NDArray[np.float64] = (
            self._index.get_scores(self._analyzer.questions.terms(text)) / self._scale
        )
        return scores


def _lucene(documents: list[list[str]], k1: float, b: float) -> Any:
    from rank_bm25 import BM25Okapi

    class Lucene(BM25Okapi):  # type: ignore[misc]  # the package is untyped
        def _calc_idf(self, nd: dict[str, int]) -> None:
            for term, having in nd.items():
                self.idf[term] = math.log(1 + (self.corpus_size - having + 0.5) / (having + 0.5))

    made = Lucene(documents, k1=k1, b=b)
    made.avgdl = mean_length([len(terms) for terms in documents])
    return made
