"""Steps that search what was made for the corpus beforehand: questions, contexts, pieces."""

from __future__ import annotations

from core.backends.base import Vector
from core.corpus.enrichments.keys import KeyIndex, Match
from core.domain.needs import Need
from core.domain.outputs import Search
from core.domain.types import Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step

SHOWN = 20  # hits whose keys the span keeps


class Indexed(StepBase):
    """Searching keys that stand for passages; the span tells which key found each of the first hits."""

    def nearest_key(self, need: Need, vector: Vector, k: int = POOL) -> Ranking:
        """The passages with the nearest keys; a passage scores what its best key scores."""
        return self._nearest_key(need.name.lower(), vector, k)

    def key_words(self, need: Need, text: str, k: int = POOL) -> Ranking:
        """The passages whose keys score best by BM25."""
        return self._key_words(need.name.lower(), text, k)

    @step("RETRIEVER", "search vectors of keys")
    def _nearest_key(self, keys: str, vector: Vector, k: int) -> Ranking:
        return self._found(self._index(keys).search_dense(vector, k))

    @step("RETRIEVER", "search BM25 of keys")
    def _key_words(self, keys: str, text: str, k: int) -> Ranking:
        return self._found(self._index(keys).search_words(text, k), text)

    def _index(self, keys: str) -> KeyIndex:
        index: KeyIndex = self.context.prepared(Need[keys.upper()])
        return index

    def _found(self, match: Match, *texts: str) -> Ranking:
        keys = {hit.passage.id: match.keys[hit.passage.id] for hit in match.hits[:SHOWN]}
        self.span.output = Search(texts, keys=keys)
        return match.hits
