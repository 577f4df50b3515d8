"""Pseudo-relevance feedback: the first passages found count as relevant, and the question is drawn to them.

Where they are not, the question drifts: the steps record which passages they believed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.backends.base import Matrix, Vector
from core.domain import outputs
from core.domain.text import searchable
from core.domain.types import Hit, Passage, Ranking, Remembered
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

COMMON = 0.1  # share of passages from which a term is too common to be taken from feedback
LENGTHS = range(2, 21)  # characters of a term that may be taken from feedback
MAX_RECORDED_HITS = 5  # first hits whose terms the span keeps


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """An expanded query."""

    before: str  # the original text
    terms: outputs.Terms  # the weighted BM25 terms to search with, heaviest first
    added: tuple[str, ...] = ()  # the terms taken from `passages`
    passages: tuple[str, ...] = ()  # ids of the feedback passages

    @property
    def text(self) -> str:
        """As Lucene would be asked: each term with its boost."""
        return " ".join(f"{term}^{weight:.3f}" for term, weight in self.terms)

    def recorded(self) -> outputs.Rewrite:
        """Return the output stored on the span."""
        return outputs.Rewrite(self.before, (self.text,), "keywords", self.terms, self.added, self.passages)


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


def interpolated(asked: Mapping[str, float], added: Mapping[str, float], original: float) -> outputs.Terms:
    """Terms of both with weights that add up to 1, heaviest first, ties by name; none with weight 0."""
    weights = {
        term: original * asked.get(term, 0.0) + (1 - original) * added.get(term, 0.0)
        for term in {**asked, **added}
    }
    return tuple(sorted(((t, w) for t, w in weights.items() if w > 0), key=lambda one: (-one[1], one[0])))


NEAR = 10  # passages found for each sample, to compare the samples by


def mean_vector(vectors: Matrix) -> Vector:
    """Return the mean of unit vectors (n, dim), scaled to length 1, shape (dim,); zeros if the vectors cancel
    each other out.

    Source: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval ...", arXiv:2212.10496, equation 8.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    found: Vector = (mean / length if length > 1e-6 else np.zeros_like(mean)).astype(np.float32)
    return found


def spread(vectors: Matrix) -> outputs.VectorSpread:
    """Return the spread of `vectors` (n, dim), n at least 1, each of length 1. Both figures are 0 if all are
    equal or there is only one.
    """
    exact = vectors.astype(np.float64)
    upper = np.triu_indices(len(exact), 1)
    distances = 1 - (exact @ exact.T)[upper]
    return outputs.VectorSpread(
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


def weigh(similarities: Sequence[float], decay: float, relevance: float) -> list[tuple[int, float, float]]:
    """(age, recency, score) of turns, oldest first, from their cosines with the question.

    score = relevance * max(0, cosine) + (1 - relevance) * decay ** age; the newest turn has age 0.
    Source: Park et al. 2023, "Generative Agents", arXiv:2304.03442, section 4.1: a weighted sum of recency,
    importance and relevance. Importance is left out, because only a model could rate it, and relevance is not
    scaled to the memory's own minimum and maximum, which would call the least unfitting turn a perfect fit.
    """
    ages = range(len(similarities) - 1, -1, -1)
    return [
        (age, decay**age, relevance * max(0.0, similarity) + (1 - relevance) * decay**age)
        for age, similarity in zip(ages, similarities, strict=True)
    ]


def as_passage(turn: Remembered) -> Passage:
    """Convert a remembered turn to a passage; its id and title identify the conversation and turn."""
    of = f"conversation {turn.session}" if turn.session else "conversation"
    folder = f"memory/{turn.session}"
    title = f"{of}, turn {turn.number} ({turn.role})"
    return Passage(f"{folder}/{turn.number}", folder, title, turn.text, 0, len(turn.text))


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
            self.note("the first passages gave no term: the question is used unchanged")
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
        size = len(query.terms)
        self.span.output = outputs.Search((query.text,), "BM25", {}, size, query.terms, matched, where=where)
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
        self.span.output = outputs.Embedding((text,), feedback=tuple(hit.passage.id for hit in believed))
        if not believed:
            self.note("no passage was found: the question's vector is used unchanged")
            return vector
        mean = self.vectors_of(believed).mean(axis=0, dtype=np.float64)
        moved = (1 - feedback) * np.asarray(vector, np.float64) + feedback * mean
        length = float(np.linalg.norm(moved))
        return (moved / length).astype(np.float32) if length > 1e-6 else np.asarray(vector)

    @step("CHAIN", "expand the question with passages", returns=str)
    def query_to_document(self, text: str, passages: tuple[str, ...], times: int = 5) -> str:
        """`text`, `times` times, then `passages`: longer texts would otherwise outweigh it.

        Source: Wang, Yang & Wei 2023, "Query2doc", arXiv:2303.07678, section 2.
        """
        expanded = " ".join([*[text] * times, *passages])
        self.span.output = outputs.Rewrite(text, (expanded,), "context")
        return expanded

    @step("EMBEDDING", "mean of embeddings", returns=Vector)
    def mean_of(self, texts: tuple[str, ...], question: str | None = None) -> Vector:
        """Return the mean of the vectors of `texts`, and of `question` if given; see `mean_vector`. The span
        records the `spread` of the texts alone.
        """
        vectors = np.stack([self.embed(text) for text in texts])
        self.span.output = outputs.Embedding(tuple(texts), question, spread=spread(vectors))
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
        self.span.output = outputs.SampleSearches(
            tuple(texts), scored, overlap(lists), in_all, self.context.where
        )
        return lists

    @step("RETRIEVER", "search the conversation", returns=Ranking)
    def remembered(self, text: str, decay: float, relevance: float, k: int) -> Ranking:
        """Return the `k` earlier turns that weigh most for `text`; the span records each weight."""
        turns = self.context.memory
        self.span.attributes["turns"] = len(turns)
        self.span.output = outputs.Search((text,))
        if not turns:
            self.note("no remembered turns: no session with turns and no conversation given")
            return ()
        question = self.embed(text)
        vectors = self.context.turn_vectors.embed(self.context.embedder, [turn.text for turn in turns])
        similarities = [float(similarity) for similarity in vectors @ question]
        weighed = weigh(similarities, decay, relevance)
        passages = {passage.id: passage for passage in map(as_passage, turns)}
        recalls = [outputs.Recalled(id, similarities[n], *weighed[n]) for n, id in enumerate(passages)]
        counting = [recall for recall in recalls if recall.score > 0]
        if not counting:
            self.note(f"none of {len(turns)} turns has anything in common with the question")
        best = sorted(counting, key=lambda recall: (-recall.score, recall.id))[:k]
        self.span.output = outputs.Search((text,), recalled=tuple(best))
        return tuple(Hit(passages[recall.id], recall.score) for recall in best)

    @step("EVALUATOR", "does the question stand alone", returns=bool)
    def stands_alone(self, found: Ranking, threshold: float) -> bool:
        """Return True if the best cosine in `found` is at least `threshold`, so that earlier turns would only
        distract.

        A follow-up's similarity to the turns before it hardly distinguishes it from a change of subject; its
        own distance to the nearest passage does.
        """
        best = found[0].score if found else None
        alone = best is not None and best >= threshold
        ways = ("stands alone", "needs what was said")
        why = "the question by itself is near no passage: what was recalled is searched with"
        if alone:
            why = "the question by itself is near a passage: what was recalled is not used"
        self.span.output = outputs.Decision(ways[0 if alone else 1], ways, why, best, float(threshold))
        return alone

    @step("CHAIN", "put recalled turns before the question", returns=str)
    def in_context(self, text: str, recalled: Ranking) -> str:
        """Join the recalled turns, oldest first, and `text` into a text for BM25 and for the answer."""
        order = {as_passage(turn).id: place for place, turn in enumerate(self.context.memory)}
        turns = sorted(recalled, key=lambda hit: order[hit.passage.id])
        joined = "\n".join([*(hit.passage.text for hit in turns), text])
        self.span.output = outputs.Rewrite(text, (joined,), "context")
        return joined

    @step("EMBEDDING", "mean with recalled turns", returns=Vector)
    def drawn_to(self, text: str, recalled: Ranking, weight: float) -> Vector:
        """Add `weight` times each turn's vector times its score to the question's vector; length 1, shape
        (dim,).

        Source: Rocchio 1971, "Relevance Feedback in Information Retrieval", with turns as the relevant
        documents.
        """
        texts = [hit.passage.text for hit in recalled]
        vectors = self.context.turn_vectors.embed(self.context.embedder, texts)
        scores = np.array([hit.score for hit in recalled], np.float32)
        self.span.output = outputs.Embedding((text,), recalled=tuple(hit.passage.id for hit in recalled))
        mean: Vector = self.embed(text) + np.float32(weight) * (scores @ vectors)
        return mean / max(float(np.linalg.norm(mean)), 1e-12)
