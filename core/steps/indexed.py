"""Steps that search what was made for the corpus beforehand: questions, contexts, pieces."""

from __future__ import annotations

from core.backends.base import Vector
from core.corpus.enrichments.keys import KeyIndex, Match
from core.domain.needs import Need
from core.domain.outputs import Search
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step

MAX_RECORDED_HITS = 20  # hits whose keys the span keeps


class Indexed(StepBase):
    """Searches over keys that represent passages; the span records which key found each of the first hits."""

    def nearest_key(self, need: Need, vector: Vector, k: int = POOL) -> Ranking:
        """Return the passages with the nearest keys; a passage scores as its best key."""
        return self._nearest_key(need.name.lower(), vector, k)

    def key_words(self, need: Need, text: str, k: int = POOL) -> Ranking:
        """Return the passages whose keys score best by BM25."""
        return self._key_words(need.name.lower(), text, k)

    @step("RETRIEVER", "search vectors of keys", returns=Ranking)
    def _nearest_key(self, keys: str, vector: Vector, k: int) -> Ranking:
        return self._found(self._index(keys).search_dense(vector, k, self.allowed()))

    def collapsed_tree(self, need: Need, vector: Vector, k: int = POOL) -> Ranking:
        """Return the passages nearest to `vector`, directly or through a summary above them, with all levels
        in one list. A passage scores as the best of these; ties break by its own cosine.
        """
        return self._collapsed_tree(need.name.lower(), vector, k)

    @step("RETRIEVER", "search the collapsed tree", returns=Ranking)
    def _collapsed_tree(self, keys: str, vector: Vector, k: int) -> Ranking:
        corpus = self.context.corpus
        above = self._index(keys).search_dense(vector, k, self.allowed())
        leaves = corpus.search_dense(vector, k, self.context.where)
        found = {hit.passage.id: hit for hit in (*above.hits, *leaves)}
        rows = [corpus.row(id) for id in found]
        own = dict(zip(found, (corpus.vectors(rows) @ vector).tolist(), strict=True)) if rows else {}
        best = own | {hit.passage.id: hit.score for hit in above.hits if hit.score > own[hit.passage.id]}
        ids = sorted(found, key=lambda id: (-best[id], -own[id], id))[:k]
        by_summary = {id: above.keys[id] for id in ids[:MAX_RECORDED_HITS] if best[id] > own[id]}
        alone = sorted(own, key=lambda id: (-own[id], id))[:MAX_RECORDED_HITS]
        self.span.output = Search(keys=by_summary, alone=tuple(alone), where=self.context.where)
        return tuple(Hit(found[id].passage, best[id]) for id in ids)

    @step("RETRIEVER", "search BM25 of keys", returns=Ranking)
    def _key_words(self, keys: str, text: str, k: int) -> Ranking:
        return self._found(self._index(keys).search_words(text, k, self.allowed()), text)

    def _index(self, keys: str) -> KeyIndex:
        index: KeyIndex = self.context.prepared(Need[keys.upper()])
        return index

    def _found(self, match: Match, *texts: str) -> Ranking:
        keys = {hit.passage.id: match.keys[hit.passage.id] for hit in match.hits[:MAX_RECORDED_HITS]}
        self.span.output = Search(texts, keys=keys, where=self.context.where)
        return match.hits
