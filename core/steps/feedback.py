"""Pseudo-relevance feedback: the first passages found count as relevant, and the question is drawn to them.

Where they are not, the question drifts: the steps record which passages they believed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.backends.base import Vector
from core.domain.outputs import Embedding, Rewrite, Search, Terms
from core.domain.text import searchable
from core.domain.types import Ranking
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

COMMON = 0.1  # share of passages from which a term is too common to be taken from feedback
LENGTHS = range(2, 21)  # characters of a term that may be taken from feedback
MAX_RECORDED_HITS = 5  # first hits whose terms the span keeps


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """An expanded query."""

    before: str  # the original text
    terms: Terms  # the weighted BM25 terms to search with, heaviest first
    added: tuple[str, ...] = ()  # the terms taken from `passages`
    passages: tuple[str, ...] = ()  # ids of the feedback passages

    @property
    def text(self) -> str:
        """As Lucene would be asked: each term with its boost."""
        return " ".join(f"{term}^{weight:.3f}" for term, weight in self.terms)

    def recorded(self) -> Rewrite:
        """Return the output stored on the span."""
        return Rewrite(self.before, (self.text,), "keywords", self.terms, self.added, self.passages)


class Feedback(Retrieve):
    """Searching again with what the first passages say."""

    @step("CHAIN", "add feedback terms (RM3)", returns=WeightedQuery)
    def rm3(
        self, text: str, first: Ranking, passages: int = 10, terms: int = 10, original: float = 0.5
    ) -> WeightedQuery:
        """Expand `text` with RM3: its own terms weigh `original` in total, and the `terms` most used in the
        first `passages` of `first` weigh the rest; see `relevance_model`. Without such terms, `text` is
        searched unchanged.

        Source: Abdul-Jaleel et al. 2004, "UMass at TREC 2004: Novelty and HARD", the third relevance model;
        Lavrenko & Croft 2001, "Relevance-Based Language Models", doi:10.1145/383952.383972.
        """
        corpus, believed = self.context.corpus, first[:passages]
        own = Counter(term for term, _ in corpus.terms(text))
        asked = {term: count / own.total() for term, count in own.items()}
        texts = [corpus.terms(searchable(hit.passage.title, hit.passage.text)) for hit in believed]
        weighed = [Counter(t for t, idf in some if usable(t, idf, corpus.size)) for some in texts]
        added = relevance_model(weighed, [hit.score for hit in believed], terms)
        if not added:
            self.span.attributes["note"] = "the first passages gave no term: the question is used unchanged"
            original = 1.0
        found = interpolated(asked, added, original)
        new = tuple(term for term, _ in found if term not in asked)
        return WeightedQuery(text, found, new, tuple(hit.passage.id for hit in believed))

    @step("RETRIEVER", "search BM25 by weighted terms", returns=Ranking)
    def weighted_terms(self, query: WeightedQuery, k: int = POOL) -> Ranking:
        """Return the `k` passages with the highest weighted sum of the terms' BM25 scores."""
        where = self.context.where
        found, parts = self.context.corpus.search_terms(dict(query.terms), k, MAX_RECORDED_HITS, where)
        matched = {id: tuple(by) for id, by in parts}
        self.span.output = Search(
            (query.text,), "BM25", {}, len(query.terms), query.terms, matched, where=where
        )
        return found

    @step("EMBEDDING", "move the vector towards the first passages (Rocchio)", returns=Vector)
    def rocchio(
        self, vector: Vector, text: str, first: Ranking, passages: int = 3, feedback: float = 0.4
    ) -> Vector:
        """Move the query vector toward relevant passages: (1 - `feedback`) times `vector` plus `feedback`
        times the mean vector of the first `passages` of `first`, scaled to length 1, shape (dim,). Without
        passages, `vector` is returned.

        Source: Rocchio 1971, "Relevance Feedback in Information Retrieval", without its negative part; for
        embeddings: Li et al. 2022, "Pseudo-Relevance Feedback with Deep Language Models and Dense
        Retrievers", arXiv:2108.11044, section 3.3.
        """
        believed = first[:passages]
        self.span.output = Embedding((text,), feedback=tuple(hit.passage.id for hit in believed))
        if not believed:
            self.span.attributes["note"] = "no passage was found: the question's vector is used unchanged"
            return vector
        mean = self.vectors_of(believed).mean(axis=0, dtype=np.float64)
        moved = (1 - feedback) * np.asarray(vector, np.float64) + feedback * mean
        length = float(np.linalg.norm(moved))
        unit: Vector = (moved / length).astype(np.float32) if length > 1e-6 else np.asarray(vector)
        return unit

    @step("CHAIN", "expand the question with passages", returns=str)
    def query_to_document(self, text: str, passages: tuple[str, ...], times: int = 5) -> str:
        """`text`, `times` times, then `passages`: longer texts would otherwise outweigh it.

        Source: Wang, Yang & Wei 2023, "Query2doc", arXiv:2303.07678, section 2.
        """
        expanded = " ".join([*[text] * times, *passages])
        self.span.output = Rewrite(text, (expanded,), "context")
        return expanded


def usable(term: str, idf: float, size: int) -> bool:
    """Return True if a term may be taken from feedback: of medium length, alphanumeric, and in at most the
    share COMMON of the `size` passages. `idf` is that of `BM25Index.idf`.
    """
    having = round((size + 1) / math.exp(idf) - 0.5)
    return len(term) in LENGTHS and term.isalnum() and having <= COMMON * size


def relevance_model(
    texts: Sequence[Mapping[str, int]], scores: Sequence[float], terms: int
) -> dict[str, float]:
    """Return the `terms` likeliest in relevant passages with probabilities that sum to 1. A term's weight is
    the sum over `texts` of its share of the text's terms times the text's score. Ties break by name.
    """
    total: defaultdict[str, float] = defaultdict(float)
    for counts, score in zip(texts, scores, strict=True):
        length = sum(counts.values())
        for term, count in counts.items():
            total[term] += count / length * score
    best = sorted(total.items(), key=lambda one: (-one[1], one[0]))[:terms]
    whole = sum(weight for _, weight in best)
    return {term: weight / whole for term, weight in best} if whole > 0 else {}


def interpolated(asked: Mapping[str, float], added: Mapping[str, float], original: float) -> Terms:
    """Terms of both with weights that add up to 1, heaviest first, ties by name; none with weight 0."""
    weights = {
        term: original * asked.get(term, 0.0) + (1 - original) * added.get(term, 0.0)
        for term in {**asked, **added}
    }
    return tuple(sorted(((t, w) for t, w in weights.items() if w > 0), key=lambda one: (-one[1], one[0])))
