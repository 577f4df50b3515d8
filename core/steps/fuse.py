"""Fusion of rankings: pure functions, and the steps that trace them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.backends.base import Vector
from core.corpus.types import UNMEASURED
from core.domain.errors import BadInput
from core.domain.fusion import Norm, linear, rrf
from core.domain.outputs import Fusion, Rerank, Reranked
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step


def _in_turn(lists: Sequence[Ranking]) -> Ranking:
    merged = {hit.passage.id: hit.passage for ranking in lists for hit in ranking}
    return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(merged.values(), 1))


def ranks(lists: Sequence[Ranking]) -> dict[str, list[int | None]]:
    """Return each passage's rank in each list, from 1; None if absent. Of repeats the best counts."""
    found: dict[str, list[int | None]] = {}
    for index, ranking in enumerate(lists):
        for rank, id in enumerate(dict.fromkeys(hit.passage.id for hit in ranking), 1):
            found.setdefault(id, [None] * len(lists))[index] = rank
    return found


def union(lists: Sequence[Ranking]) -> Ranking:
    """All passages of all lists, ordered by best rank, then by the number of lists with it, then by id.

    The score tells just that order: 1 / (best rank + the share of lists without it), so 1.0 is a passage that
    leads some list and is in all. As the share is below 1, it never outweighs a rank.
    Source: LangChain's MultiQueryRetriever takes the unique union of the variants' results and leaves its
    order open; this order does not depend on that of the variants.
    """
    scores = {}
    for id, places in ranks(lists).items():
        known = [rank for rank in places if rank is not None]
        scores[id] = len(lists) / (len(lists) * min(known) + places.count(None))
    return _ranked(lists, scores)


def _ranked(lists: Sequence[Ranking], scores: dict[str, float]) -> Ranking:
    passages: dict[str, Passage] = {hit.passage.id: hit.passage for one in lists for hit in one}
    return tuple(Hit(passages[id], scores[id]) for id in sorted(scores, key=lambda id: (-scores[id], id)))


class Fuse(StepBase):
    """Fusion as traced steps."""

    @step("CHAIN", "fuse by reciprocal rank", returns=Ranking)
    def rrf(
        self, lists: tuple[Ranking, ...], k: float = 60, weights: tuple[float, ...] | None = None
    ) -> Ranking:
        """See `rrf`."""
        self.span.output = Fusion("rrf")
        return rrf(lists, k=k, weights=weights)

    @step("CHAIN", "fuse by normalised scores", returns=Ranking)
    def linear(
        self, lists: tuple[Ranking, ...], weights: tuple[float, ...] | None = None, norm: Norm = "min_max"
    ) -> Ranking:
        """See `linear`."""
        self.span.output = Fusion("linear")
        return linear(lists, weights=weights, norm=norm)

    @step("CHAIN", "append the rest", returns=Ranking)
    def append(self, first: Ranking, rest: Ranking) -> Ranking:
        """`first`, then what `rest` has besides; scores become 1 / rank, because the two lists' do not
        compare.
        """
        self.span.output = Fusion("append")
        return _in_turn((first, rest))

    @step("CHAIN", "put lists one behind another", returns=Ranking)
    def concat(self, *lists: Ranking) -> Ranking:
        """`append` for any number of lists: what `+` does, but the trace knows the lists."""
        self.span.output = Fusion("concat")
        return _in_turn(lists)

    @step("CHAIN", "unite the lists", returns=Ranking)
    def union(self, lists: tuple[Ranking, ...], texts: tuple[str, ...]) -> Ranking:
        """Return the first 2 * POOL of `union`. The span records, per text, the passages that only it found
        ("only").
        """
        self._one_text_a_list(lists, texts)
        only: dict[str, list[str]] = {text: [] for text in texts}
        for id, places in ranks(lists).items():
            having = [text for text, rank in zip(texts, places, strict=True) if rank is not None]
            if len(having) == 1:
                only[having[0]].append(id)
        self.span.output = Fusion("union", only={text: tuple(ids) for text, ids in only.items()})
        return union(lists)[: 2 * POOL]

    def _one_text_a_list(self, lists: tuple[Ranking, ...], texts: tuple[str, ...]) -> None:
        if len(texts) != len(lists):
            raise BadInput(f"{len(texts)} texts for {len(lists)} lists; give one text per list")


FusedBy = Literal["auto", "z", "min_max", "rrf"]


class Hybrid(Retrieve, Fuse):
    """BM25 and dense search, fused."""

    def hybrid(self, text: str, fused_by: FusedBy = "auto", weight: float | None = None) -> Ranking:
        """Search by BM25 and dense, and fuse: "auto" adds absolute scores, the cosine by `weight` (None: as
        the corpus was measured to need) and "z" z-scores, both of every candidate, "min_max" the normalised
        scores of each list, "rrf" reciprocal ranks.
        """
        if fused_by == "z":
            return self.linear(self.both(text), (0.5, 0.5), "z")  # as hybrid_linear
        if fused_by != "auto":
            lists = (self.sparse(text), self.dense(text))
            return self.rrf(lists) if fused_by == "rrf" else self.linear(lists)
        dense = self.dense_weight if weight is None else weight
        return self.linear(self.both(text), (1 - dense, dense), "none")

    def both(self, text: str) -> tuple[Ranking, Ranking]:
        """Return the passages that BM25 or dense search found, scored by each: BM25 as a share of the
        question's summed IDF, and the cosine.
        """
        vector = self.embed(text)
        lists = (self.sparse(text), self.nearest(vector))
        return self.score_words(text, lists), self.score_vectors(vector, lists)

    def found_with(
        self, retriever: Literal["hybrid", "bm25", "dense"], text: str, fused_by: FusedBy = "auto"
    ) -> Ranking:
        """Search by BM25, by dense vectors, or by both; see `hybrid`."""
        if retriever == "hybrid":
            return self.hybrid(text, fused_by)
        return self.sparse(text) if retriever == "bm25" else self.dense(text)

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
            by, tuple(Reranked(id, was[id], found[id].score, new[id]) for id in order), scored=len(order)
        )
        return tuple(Hit(found[id].passage, new[id]) for id in order)


def _united(lists: Sequence[Ranking]) -> dict[str, Hit]:
    found: dict[str, Hit] = {}
    for ranking in lists:
        for hit in ranking:
            found.setdefault(hit.passage.id, hit)
    return found
