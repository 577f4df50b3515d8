"""Steps of late interaction: each token of the question looks for its like in every passage."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.backends.base import Rows
from core.backends.late import MatchMatrix, TokenVectors, match_matrix
from core.enrich.tokens import TokenIndex
from core.route import Need
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step
from core.types import Hit, Ranking

TOLD, DRAWN = 5, 3  # first hits whose best matches the span keeps, and those with the whole matrix
ROWS, COLUMNS = 32, 256  # of a kept matrix


def told(match: MatchMatrix, *, whole: bool) -> dict[str, Any]:
    """What a span keeps of how a passage matched.

    `best` has for each token of the question the passage's most similar token and their cosine, which add up
    to the score. With `whole` also the matrix, at most ROWS x COLUMNS of it.
    """
    kept: dict[str, Any] = {"best": []}
    if match.passage:
        at = match.similarities.argmax(axis=1)
        cosines = match.similarities[np.arange(len(at)), at]
        kept["best"] = [
            [match.passage[column], round(float(cosine), 4)]
            for column, cosine in zip(at, cosines, strict=True)
        ]
    if whole:
        kept["passage"] = match.passage[:COLUMNS]
        kept["tokens"] = len(match.passage)
        kept["cosines"] = [
            [round(float(cell), 2) for cell in row] for row in match.similarities[:ROWS, :COLUMNS]
        ]
    return kept


class LateInteraction(StepBase):
    """MaxSim (Khattab & Zaharia 2020, arXiv:2004.12832) over the token vectors made for the corpus."""

    @step("EMBEDDING", "embed tokens")
    def embed_tokens(self, text: str) -> TokenVectors:
        """The tokens of `text` and their unit vectors, shape (tokens, dim)."""
        index = self._token_index()
        self.span.inputs["model"] = index.name
        return index.embed_query(text)

    @step("RERANKER", "score by matching tokens")
    def maxsim(self, asked: TokenVectors, lists: tuple[Ranking, ...], candidates: int) -> Ranking:
        """The first `candidates` of each of `lists` by exact MaxSim, the best 2 * POOL (ibid., section 3.5).

        Ties by passage id. Nothing for a question without a token. The span tells how the first hits matched.
        """
        self.span.inputs["lists"] = [self.context.trace.made(ranking) for ranking in lists]
        index, corpus = self._token_index(), self.context.corpus
        found = {hit.passage.id: hit.passage for ranking in lists for hit in ranking[:candidates]}
        ids = sorted(found)
        rows = [corpus.row(id) for id in ids]
        self.span.inputs["scored"] = len(ids)
        if not asked.tokens:
            return self._unmatched(index)
        scores = index.scores(asked.vectors, rows, self.context.left).tolist()
        order = sorted(range(len(ids)), key=lambda at: (-scores[at], ids[at]))[: 2 * POOL]
        self._explain(index, asked, [(rows[at], scores[at]) for at in order], [ids[at] for at in order])
        return tuple(Hit(found[ids[at]], scores[at]) for at in order)

    @step("RETRIEVER", "search all token vectors")
    def maxsim_all(self, asked: TokenVectors, k: int = POOL) -> Ranking:
        """The `k` passages of the whole corpus with the highest MaxSim, exactly; ties by passage id.

        The paper's end-to-end search (section 3.6) looks only near the question's tokens; this at everything.
        """
        index = self._token_index()
        self.span.inputs["scored"] = index.size
        if not asked.tokens:
            return self._unmatched(index)
        scores = index.scores(asked.vectors, check=self.context.left)
        order = np.lexsort((np.arange(len(scores)), -scores))[:k].tolist()  # rows are sorted by passage id
        passages = self.context.corpus.passages(order)
        best = [(row, float(scores[row])) for row in order]
        self._explain(index, asked, best, [passage.id for passage in passages])
        return tuple(Hit(passage, score) for passage, (_, score) in zip(passages, best, strict=True))

    def _explain(self, index: TokenIndex, asked: TokenVectors, best: Rows, ids: list[str]) -> None:
        self.span.inputs["model"] = index.name
        hits = []
        for at, ((row, score), id) in enumerate(zip(best[:TOLD], ids, strict=False)):
            passage = TokenVectors(index.tokens(row), index.of([row])[0])
            kept = told(match_matrix(asked, passage), whole=at < DRAWN)
            hits.append({"id": id, "score": score, **kept})
        self.span.inputs["match"] = {"query": asked.tokens, "hits": hits}

    def _unmatched(self, index: TokenIndex) -> Ranking:
        self.span.inputs["model"] = index.name
        self.span.inputs["note"] = "the question has no token to match with: nothing found"
        return ()

    def _token_index(self) -> TokenIndex:
        index: TokenIndex = self.context.prepared(Need.TOKENS)
        return index
