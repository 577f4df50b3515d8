"""Steps that search: dense, BM25, the web."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from core.backends.base import Matrix, Vector
from core.backends.vector import Kind
from core.corpus.enrichments.keys import KeyIndex, Match
from core.corpus.enrichments.learned import TermIndex
from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.outputs import Embedding, Reranked, Search, Terms
from core.domain.outputs import Rerank as Reordered
from core.domain.text import searchable
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.step import step

POOL = 100  # hits each retriever returns, so that routes share one search and recall@100 can be told

EMBEDDED_NOW = "embedded now"  # the attribute of a span: how many texts, and what would have held them

Engine = Literal["bm25s", "rank-bm25"]
SearchBy = Literal["index", "exact"]


TERMS = 30  # of the question, the heaviest, that the span keeps
MAX_RECORDED_HITS = 5  # first hits whose terms the span keeps


def _terms(weighed: Iterable[Sequence[Any]]) -> Terms:
    return tuple((str(term), float(weight)) for term, weight in weighed)


MAX_RECORDED_KEYS = 20  # hits whose keys the span keeps


class Retrieve(StepBase):
    """Embedding and searching."""

    @step("EMBEDDING", "embed", returns=Vector)
    def embed(self, text: str) -> Vector:
        """Return the unit vector of `text`, shape (dim,)."""
        self.span.output = Embedding((text,))
        return self.context.embedder.embed_query(text)

    def vectors_of(self, hits: Ranking) -> Matrix:
        """Return the unit vectors of passages, shape (n, dim): the index's, or computed now for passages
        outside it.

        Runs within a step, whose span counts those computed.
        """
        corpus, embedder = self.context.corpus, self.context.embedder
        rows = self.rows_of(hits)
        vectors = np.empty((len(hits), embedder.dim), np.float32)
        if rows:
            vectors[list(rows)] = corpus.vectors(list(rows.values()))
        others = [at for at in range(len(hits)) if at not in rows]
        if others:
            self.span.attributes["embedded"] = len(others)
            texts = [searchable(hits[at].passage.title, hits[at].passage.text) for at in others]
            vectors[others] = embedder.embed(texts)
        return vectors

    def vectors_of_texts(self, texts: Sequence[str], ready: Need | None = None) -> Matrix:
        """Return the unit vectors of parts of passages, shape (n, dim). Runs within a step: its span records
        how many were embedded for an earlier question, and, if the enrichment `ready` could have stored them,
        how many are embedded now.
        """
        cache, embedder = self.context.sentence_vectors, self.context.embedder
        if known := cache.known(embedder, texts):
            self.span.attributes["embedded before"] = f"{known} of {len(texts)} texts"
        if ready is not None and known < len(texts):
            self.span.attributes[EMBEDDED_NOW] = {"texts": len(texts) - known, "ready": ready.name.lower()}
        return cache.embed(embedder, texts)

    def rows_of(self, hits: Ranking) -> dict[int, int]:
        """By position, the corpus' row of each hit that is of the corpus."""
        corpus = self.context.corpus
        ids = [hit.passage.id for hit in hits]
        own = corpus.by_ids(ids)
        return {at: corpus.row(id) for at, id in enumerate(ids) if own.get(id) == hits[at].passage}

    @step("RETRIEVER", "search vectors", returns=Ranking)
    def nearest(self, vector: Vector, k: int = POOL) -> Ranking:
        """Return the `k` passages of highest inner product with `vector`."""
        self.span.attributes["index"] = self.context.corpus.info.vector_index
        self.span.output = Search(where=self.context.where)
        return self.context.corpus.search_dense(vector, k, self.context.where)

    @step("RETRIEVER", "search vectors", returns=Ranking)
    def nearest_by(self, vector: Vector, k: int, search: SearchBy, ef_search: int) -> Ranking:
        """`nearest`, past the index where `search` is "exact", or by a graph at another effort."""
        exact, where = search == "exact", self.context.where
        self.span.attributes["index"] = "flat" if exact else self.context.corpus.info.vector_index
        self.span.output = Search(where=where)
        return self.context.corpus.search_dense(vector, k, exact=exact, effort=ef_search, where=where)

    def dense(self, text: str, k: int = POOL, search: SearchBy = "index", ef_search: int = 0) -> Ranking:
        """Embed `text`, then `nearest`, or `nearest_by` where it is to be searched otherwise."""
        if search == "index" and not ef_search:
            return self.nearest(self.embed(text), k)
        return self.nearest_by(self.embed(text), k, search, ef_search)

    @step("RETRIEVER", "search full text", returns=Ranking)
    def full_text(self, text: str, k: int = POOL) -> Ranking:
        """Return the `k` passages of highest ts_rank_cd for any of the words of `text`; passages without one
        are not hits. Raises Unavailable if the corpus is not in PostgreSQL.

        Source: Clarke, Cormack & Tudhope 1999, "Relevance Ranking for One to Three Term Queries".
        """
        self.span.output = Search((text,), where=self.context.where)
        return self.context.corpus.search_full_text(text, k, self.context.where)

    @step("RETRIEVER", "search BM25", returns=Ranking)
    def sparse(self, text: str, k: int = POOL, engine: Engine = "bm25s") -> Ranking:
        """Return the `k` passages of highest BM25 score; a passage without a common term is not a hit.

        `engine` computes it; the two agree except for rounding.

        Source: Robertson & Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond".
        """
        corpus, where = self.context.corpus, self.context.where
        self.span.output = Search((text,), where=where)
        found = corpus.search_sparse(text, k, engine, where)
        if not found:
            met = where and corpus.search_sparse(text, 1, engine)
            why = "no passage that meets the filters has any of its terms" if met else ""
            self.span.output = Search((text,), unfound=why or corpus.why_no_words(text), where=where)
        return found

    @step("TOOL", "search the web", returns=Ranking)
    def web(self, text: str, k: int = 5) -> Ranking:
        """Up to `k` results from outside the corpus; Unavailable without a web search, WebFailed when it
        gives no usable answer.
        """
        context = self.context
        if context.web is None:
            raise Unavailable("no web search is set up")
        self.span.attributes["source"] = context.web.label
        self.span.output = Search((text,))
        with context.at_most(context.llm_timeout_s) as timeout:
            found = context.web.search(text, k, timeout=timeout, cancel=context.cancel)
        return tuple(Hit(passage, score) for passage, score in found)

    @step("RETRIEVER", "search learned term weights", returns=Ranking)
    def learned_sparse(self, text: str, k: int = POOL) -> Ranking:
        """Return the `k` passages with the highest inner product of term weights, above 0; ties break by id.

        The span records the terms searched ("expansion", of "terms" in all) and each term's contribution to
        the first hits' scores ("matched"). Source: Formal et al. 2021, "SPLADE", arXiv:2107.05720.
        """
        index: TermIndex = self.context.prepared(Need.LEARNED_SPARSE)
        found = index.search(text, k, MAX_RECORDED_HITS, self.allowed())
        passages = self.context.corpus.passages([row for row, _ in found.rows])
        matched = {
            passage.id: _terms(found.matched[row])
            for (row, _), passage in zip(found.rows[:MAX_RECORDED_HITS], passages, strict=False)
        }
        heaviest = _terms(found.expansion[:TERMS])
        self.span.output = Search(
            (text,), index.name, {}, len(found.expansion), heaviest, matched, where=self.context.where
        )
        if not found.expansion:
            self.note("the model gave no term of the question any weight: nothing found")
        return tuple(Hit(passage, score) for (_, score), passage in zip(found.rows, passages, strict=True))

    @step("RETRIEVER", "search coded vectors", returns=Ranking)
    def coded(self, vector: Vector, kind: Kind, k: int) -> Ranking:
        """Return the `k` passages whose codes are nearest to `vector`; see `core.backends.vector`."""
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
        moved = tuple(Reranked(first[at].passage.id, at + 1, first[at].score, scores[at]) for at in order)
        self.span.output = Reordered("exact inner product", moved, scored=len(first))
        return tuple(Hit(first[at].passage, scores[at]) for at in order)

    @step("RETRIEVER", "search vectors of keys", returns=Ranking)
    def nearest_key(self, keys: Need, vector: Vector, k: int = POOL) -> Ranking:
        """Return the passages with the nearest keys; a passage scores as its best key."""
        return self._found(self._index(keys).search_dense(vector, k, self.allowed()))

    @step("RETRIEVER", "search the collapsed tree", returns=Ranking)
    def collapsed_tree(self, keys: Need, vector: Vector, k: int = POOL) -> Ranking:
        """Return the passages nearest to `vector`, directly or through a summary above them, with all levels
        in one list. A passage scores as the best of these; ties break by its own cosine.
        """
        corpus = self.context.corpus
        above = self._index(keys).search_dense(vector, k, self.allowed())
        leaves = corpus.search_dense(vector, k, self.context.where)
        found = {hit.passage.id: hit for hit in (*above.hits, *leaves)}
        rows = [corpus.row(id) for id in found]
        own = dict(zip(found, (corpus.vectors(rows) @ vector).tolist(), strict=True)) if rows else {}
        best = own | {hit.passage.id: hit.score for hit in above.hits if hit.score > own[hit.passage.id]}
        ids = sorted(found, key=lambda id: (-best[id], -own[id], id))[:k]
        by_summary = {id: above.keys[id] for id in ids[:MAX_RECORDED_KEYS] if best[id] > own[id]}
        alone = sorted(own, key=lambda id: (-own[id], id))[:MAX_RECORDED_KEYS]
        self.span.output = Search(keys=by_summary, alone=tuple(alone), where=self.context.where)
        return tuple(Hit(found[id].passage, best[id]) for id in ids)

    @step("RETRIEVER", "search BM25 of keys", returns=Ranking)
    def key_words(self, keys: Need, text: str, k: int = POOL) -> Ranking:
        """Return the passages whose keys score best by BM25."""
        return self._found(self._index(keys).search_words(text, k, self.allowed()), text)

    def _index(self, keys: Need) -> KeyIndex:
        found: KeyIndex = self.context.prepared(keys)
        return found

    def _found(self, match: Match, *texts: str) -> Ranking:
        first = (hit.passage.id for hit in match.hits[:MAX_RECORDED_KEYS])
        keys = {id: key for id in first if (key := match.keys[id])}
        self.span.output = Search(texts, keys=keys, where=self.context.where)
        return match.hits
