"""The step that searches by learned term weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.corpus.enrichments.learned import TermIndex
from core.domain.needs import Need
from core.domain.outputs import Search, Terms
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step

TERMS = 30  # of the question, the heaviest, that the span keeps
MAX_RECORDED_HITS = 5  # first hits whose terms the span keeps


class LearnedTerms(StepBase):
    """Learned sparse retrieval."""

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
            self.span.attributes["note"] = "the model gave no term of the question any weight: nothing found"
        return tuple(Hit(passage, score) for (_, score), passage in zip(found.rows, passages, strict=True))


def _terms(weighed: Iterable[Sequence[Any]]) -> Terms:
    return tuple((str(term), float(weight)) for term, weight in weighed)
