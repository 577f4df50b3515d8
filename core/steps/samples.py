"""Steps over several texts sampled for one question: their mean, how far they agree, what each finds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from core.backends.base import Matrix, Vector
from core.domain.outputs import Embedding, SampleSearches, VectorSpread
from core.domain.types import Ranking
from core.steps.retrieve import Retrieve
from core.steps.step import step

NEAR = 10  # passages found for each sample, to compare the samples by


def mean_vector(vectors: Matrix) -> Vector:
    """Return the mean of unit vectors (n, dim), scaled to length 1, shape (dim,); zeros if the vectors cancel
    each other out.

    Source: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval ...", arXiv:2212.10496, equation 8.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    unit: Vector = (mean / length if length > 1e-6 else np.zeros_like(mean)).astype(np.float32)
    return unit


def spread(vectors: Matrix) -> VectorSpread:
    """Return the spread of `vectors` (n, dim), n at least 1, each of length 1. Both figures are 0 if all are
    equal or there is only one.
    """
    exact = vectors.astype(np.float64)
    upper = np.triu_indices(len(exact), 1)
    distances = 1 - (exact @ exact.T)[upper]
    return VectorSpread(
        max(0.0, float(distances.mean())) if len(distances) else 0.0,  # rounding may go below
        max(0.0, float(1 - np.linalg.norm(exact.mean(axis=0)))),
    )


def overlap(lists: Sequence[Ranking]) -> float | None:
    """Mean over pairs of lists of the share of their passages that both have (Jaccard), 0 to 1; two empty
    lists are alike. None for fewer than two lists.
    """
    found = [{hit.passage.id for hit in ranking} for ranking in lists]
    shares = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(found, 2)]
    return sum(shares) / len(shares) if shares else None


class Samples(Retrieve):
    """Embedding and comparing samples."""

    @step("EMBEDDING", "mean of embeddings", returns=Vector)
    def mean_of(self, texts: tuple[str, ...], question: str | None = None) -> Vector:
        """Return the mean of the vectors of `texts`, and of `question` if given; see `mean_vector`. The span
        records the `spread` of the texts alone.
        """
        vectors = np.stack([self.embed(text) for text in texts])
        self.span.output = Embedding(tuple(texts), question, spread=spread(vectors))
        return mean_vector(vectors if question is None else np.vstack([vectors, self.embed(question)]))

    @step("RETRIEVER", "search with each sample", returns=tuple[Ranking, ...])
    def search_each(self, texts: tuple[str, ...], k: int = NEAR) -> tuple[Ranking, ...]:
        """Return the `k` passages nearest to each text, in one search of the index."""
        vectors = np.stack([self.embed(text) for text in texts])
        lists = tuple(self.context.corpus.search_dense_many(vectors, k, self.context.where))
        scored = tuple(tuple((hit.passage.id, hit.score) for hit in ranking) for ranking in lists)
        for ranking in lists:
            self.context.trace.keep(ranking)
        ids = [{id for id, _ in found} for found in scored]
        in_all = tuple(sorted(set.intersection(*ids)))
        self.span.output = SampleSearches(tuple(texts), scored, overlap(lists), in_all, self.context.where)
        return lists
