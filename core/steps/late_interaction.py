"""Steps of late interaction: each token of the question looks for its like in every passage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Rows
from core.backends.late import MatchMatrix, TokenVectors, match_matrix
from core.corpus.enrichments.tokens import TokenIndex
from core.domain.needs import Need
from core.domain.outputs import Embedding, MatchedPassage, Rerank, Search, TokenMatches
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step

MATCHED_HITS = 5  # first hits whose best matches the span keeps
DRAWN_HITS = 3  # first hits whose whole matrix it keeps
ROWS, COLUMNS = 32, 256  # of a kept matrix


def matched(id: str, match: MatchMatrix, *, whole: bool) -> MatchedPassage:
    """Summarise how a passage matched; the best cosines sum to its score. With `whole` the matrix is
    included, at most ROWS x COLUMNS.
    """
    best: tuple[tuple[str, float], ...] = ()
    if match.passage:
        at = match.similarities.argmax(axis=1)
        cosines = match.similarities[np.arange(len(at)), at]
        best = tuple(zip((match.passage[column] for column in at.tolist()), _told(cosines, 4), strict=True))
    if not whole:
        return MatchedPassage(id, best)
    drawn = tuple(tuple(row) for row in _told(match.similarities[:ROWS, :COLUMNS], 2))
    return MatchedPassage(id, best, tuple(match.passage[:COLUMNS]), len(match.passage), drawn)


def _told(cosines: NDArray[np.float32], digits: int) -> list[Any]:
    """Round each cosine as a Python float does, to the last bit: a 32-bit float times 10**4 or less is exact
    in 64 bits.
    """
    found: list[Any] = np.round(cosines.astype(np.float64), digits).tolist()
    return found


class LateInteraction(StepBase):
    """MaxSim (Khattab & Zaharia 2020, arXiv:2004.12832) over the token vectors made for the corpus."""

    @step("EMBEDDING", "embed tokens", returns=TokenVectors)
    def embed_tokens(self, text: str) -> TokenVectors:
        """Return the tokens of `text` and their unit vectors, shape (tokens, dim)."""
        index = self._token_index()
        self.span.attributes["model"] = index.name
        self.span.output = Embedding((text,))
        return index.embed_query(text)

    @step("RERANKER", "score by matching tokens", returns=Ranking)
    def maxsim(self, asked: TokenVectors, lists: tuple[Ranking, ...], candidates: int) -> Ranking:
        """Score the first `candidates` of each of `lists` by exact MaxSim and return the best 2 * POOL
        (ibid., section 3.5).

        Ties break by passage id. A question without tokens matches nothing. The span records how the first
        hits matched.
        """
        index, corpus = self._token_index(), self.context.corpus
        self._compressed(index)
        found = {hit.passage.id: hit.passage for ranking in lists for hit in ranking[:candidates]}
        ids = sorted(found)
        rows = [corpus.row(id) for id in ids]
        if not asked.tokens:
            self.span.output = Rerank(index.name, scored=len(ids))
            return self._unmatched()
        scores = index.scores(asked.vectors, rows, self.context.left).tolist()
        order = sorted(range(len(ids)), key=lambda at: (-scores[at], ids[at]))[: 2 * POOL]
        best = [(rows[at], scores[at]) for at in order]
        matches = _matches(index, asked, best, [ids[at] for at in order])
        self.span.output = Rerank(index.name, scored=len(ids), tokens=matches)
        return tuple(Hit(found[ids[at]], scores[at]) for at in order)

    @step("RETRIEVER", "search all token vectors", returns=Ranking)
    def maxsim_all(self, asked: TokenVectors, k: int = POOL) -> Ranking:
        """Return the `k` passages of the whole corpus with the highest MaxSim, computed exactly; ties break
        by passage id.

        The paper's end-to-end search (section 3.6) scores only passages near the question's tokens.
        """
        index = self._token_index()
        where, allowed = self.context.where, self.allowed()
        rows = range(index.size) if allowed is None else np.flatnonzero(allowed).tolist()
        self.span.attributes["scored"] = len(rows)
        self._compressed(index)
        if not asked.tokens:
            self.span.output = Search(model=index.name, where=where)
            return self._unmatched()
        scores = index.scores(asked.vectors, rows, self.context.left)
        order = np.lexsort((np.arange(len(scores)), -scores))[:k].tolist()  # rows are sorted by passage id
        best = [(rows[at], float(scores[at])) for at in order]
        passages = self.context.corpus.passages([row for row, _ in best])
        matches = _matches(index, asked, best, [passage.id for passage in passages])
        self.span.output = Search(model=index.name, tokens=matches, where=where)
        return tuple(Hit(passage, score) for passage, (_, score) in zip(passages, best, strict=True))

    def _unmatched(self) -> Ranking:
        self.note("the question has no token to match with: nothing found")
        return ()

    def _compressed(self, index: TokenIndex) -> None:
        if index.compressed:
            self.span.attributes["token vectors"] = index.compressed

    def _token_index(self) -> TokenIndex:
        found: TokenIndex = self.context.prepared(Need.TOKENS)
        return found


def _matches(index: TokenIndex, asked: TokenVectors, best: Rows, ids: list[str]) -> TokenMatches:
    """Describe how the first hits matched. `best` holds their rows and scores, best first."""
    hits = []
    for at, ((row, _), id) in enumerate(zip(best[:MATCHED_HITS], ids, strict=False)):
        passage = TokenVectors(index.tokens(row), index.of([row])[0])
        hits.append(matched(id, match_matrix(asked, passage), whole=at < DRAWN_HITS))
    return TokenMatches(tuple(asked.tokens), tuple(hits))
