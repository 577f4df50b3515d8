"""Steps that put what was found in a better order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Matrix, Vector
from core.backends.rerankers import EMBEDDED, LLM
from core.backends.rerankers.blend import Blended, Candidates, Halves
from core.backends.rerankers.proximity import pair_scores, parts
from core.corpus.enrichments.keys import KeyIndex
from core.corpus.enrichments.tokens import TokenIndex
from core.domain.errors import BudgetSpent, ModelFailed, Unavailable
from core.domain.needs import Need
from core.domain.outputs import PassageGrade, Reranked
from core.domain.outputs import Rerank as RerankOutput
from core.domain.text import searchable
from core.domain.types import Hit, Ranking
from core.steps.fuse import Fuse
from core.steps.grade import Judge
from core.steps.late_interaction import LateInteraction
from core.steps.retrieve import Retrieve
from core.steps.step import step

Which = Literal["configured", "embedded", "llm"]
FOR_ANSWER = 4  # model calls that grading leaves: an answer takes up to two, each asked twice at most
# Candidates of the embedded reranker where token vectors were not made beforehand: reading a passage takes
# some 20 ms. On four sets nDCG@10 with 10 is -.021 to +.004 off that with 50, and no difference is shown.
READ_NOW = 10
READ_THEN = "read now"  # the attribute of a span: how many passages' token vectors were made
Cosines = NDArray[np.float64]  # shape (n,)


class RerankSteps(LateInteraction, Judge, Retrieve, Fuse):
    """Reranking by the embedded blend, the language model, a cross-encoder or a server."""

    def rerank(
        self, text: str, hits: Ranking, candidates: int, which: Which = "configured", share: float = 0.0
    ) -> Ranking:
        """Rerank the first `candidates` hits, then append the rest in their order.

        `which` is "embedded", "llm", or the "configured" one. The embedded one scores only `READ_NOW` hits if
        token vectors are not prepared. `share` is the weight of a cross-encoder's or server's score in the
        order, 0 to 1, the first stage having the rest; 0 selects the model's default. Raises Unavailable with
        instructions if a model is missing, ModelFailed if nothing could be scored.
        """
        name = self.context.rerankers.configured if which == "configured" else which
        if hits:
            self._open(name)
        if name not in (EMBEDDED, LLM):
            first = self._rerank_paired(text, hits[:candidates], share)
        else:
            first = (self._rerank_blend if name == EMBEDDED else self._rerank_llm)(text, hits[:candidates])
        return self.append(first, hits) if len(hits) > len(first) else first

    def _open(self, name: str) -> None:
        """Load the reranker outside the route's clock, as it is loaded once for all questions; the step
        itself reports what is missing.
        """
        with self.context.trace.aside():
            with suppress(Unavailable):
                self.context.rerankers.load(name)
            for need in (Need.TOKENS, Need.CHILDREN) if name == EMBEDDED else ():
                with suppress(Unavailable):
                    self.context.prepared(need)

    @step("RERANKER", "rerank by BM25, cosine and MaxSim", returns=Ranking)
    def _rerank_blend(self, text: str, hits: Ranking) -> Ranking:
        """Equal shares of the three signals, see `core.backends.rerankers.blend`; ties keep their order. The
        first `READ_NOW` alone where token vectors are not prepared.
        """
        if not hits:
            return self._nothing()
        hits = self._read_now(hits)
        found = self._blended(text, hits, *self._nearest_pieces(text, hits))
        return self._by_parts(hits, found, self.context.rerankers.blend().name)

    def _read_now(self, hits: Ranking) -> Ranking:
        """Return the hits, or the first `READ_NOW` if token vectors must be computed now."""
        if len(hits) <= READ_NOW or not self._unprepared():
            return hits
        self.span.attributes["candidates"] = f"{READ_NOW} of {len(hits)}: token vectors have to be made now"
        return hits[:READ_NOW]

    def _nearest_pieces(self, text: str, hits: Ranking) -> tuple[dict[int, int], Cosines]:
        """Return the corpus rows of the hits and their cosines, by the nearest piece if pieces exist.

        A passage is as good as its best part: Dai & Callan 2019, arXiv:1905.09217, section 3 (MaxP).
        """
        vector = self.embed(text)
        rows = self.rows_of(hits)
        cosine = self._cosines(hits, vector)
        try:
            pieces: KeyIndex = self.context.prepared(Need.CHILDREN)
        except Unavailable as error:
            self.span.attributes["cosine"] = f"of whole passages: {error}"
            return rows, cosine
        cosine[list(rows)] = np.round(pieces.best(vector, list(rows.values())), 6)
        self.span.attributes["cosine"] = "of the nearest piece of each passage"
        return rows, cosine

    def _by_parts(self, hits: Ranking, found: Blended, name: str) -> Ranking:
        """Sort the hits by the scores of `found`; the span keeps the parts of each score."""
        parts = [
            {name: (float(found.raw[name][at]), float(found.parts[name][at])) for name in found.parts}
            for at in range(len(hits))
        ]
        words = {str(w): float(s) for w, s in found.words}
        return self._ordered(hits, found.scores.tolist(), name, [{"parts": one} for one in parts], words)

    def _cosines(self, hits: Ranking, vector: Vector) -> Cosines:
        found: Cosines = np.round((self.vectors_of(hits) * vector).sum(axis=1), 6).astype(np.float64)
        return found

    def _blended(
        self, text: str, hits: Ranking, rows: Mapping[int, int], cosine: Cosines, *, windows: bool = False
    ) -> Blended:
        """Blend BM25, `cosine` and MaxSim of the hits; the span records what was computed now."""
        corpus, reranker = self.context.corpus, self.context.rerankers.blend()
        bm25 = np.zeros(len(hits))
        bm25[list(rows)] = corpus.bm25(text, list(rows.values()))
        stored: dict[int, Matrix | Halves] = {}
        inputs = self.span.attributes
        if why := self._unprepared():
            inputs["token vectors"] = f"made now: {why}"
        else:
            index: TokenIndex = self.context.prepared(Need.TOKENS)
            if index.compressed:
                inputs["token vectors"] = index.compressed
            stored = dict(zip(rows, index.stored(list(rows.values())), strict=True))
        found = reranker.blend(
            text,
            Candidates([hit.passage for hit in hits], bm25, cosine, corpus.idf, stored),
            asked=None if why else self.embed_tokens(text),
            timeout=self.context.left(),
            cancel=self.context.cancel,
            windows=windows,
        )
        outside = len(hits) - len(rows)
        if found.embedded > outside:
            inputs[READ_THEN] = found.embedded - outside  # whose token vectors could have been prepared
        if found.cached:
            inputs["read before"] = found.cached  # for an earlier question: cached, as their time is
        if outside:
            inputs["no BM25 score"] = f"{outside} passages are not of the corpus: it counts as 0"
        return found

    @step("RERANKER", "rerank with a model of pairs", returns=Ranking)
    def _rerank_paired(self, text: str, hits: Ranking, share: float) -> Ranking:
        """Order by the scores of the configured cross-encoder or server; what fails, fails the step.

        With a `share` below 1, both stages' scores are standardised over the candidates and added up: a
        cross-encoder knows what the question means, the first stage which words of it are rare here.
        """
        if not hits:
            return self._nothing()
        reranker = self.context.rerankers.paired()
        passages = [hit.passage for hit in hits]
        with self.context.at_most(self.context.llm_timeout_s) as timeout:
            scores = reranker.rerank(text, passages, timeout=timeout, cancel=self.context.cancel)
        share = share or reranker.share
        if share >= 1:
            return self._ordered(hits, scores, reranker.name)
        before = [hit.score for hit in hits]
        first, second = (1 - share) * standardised(before), share * standardised(scores)
        rows = zip(before, first.tolist(), scores, second.tolist(), strict=True)
        parts = [{"parts": {"first stage": (b, f), reranker.name: (s, g)}} for b, f, s, g in rows]
        return self._ordered(hits, (first + second).tolist(), f"{share:.0%} {reranker.name}", parts)

    @step("RERANKER", "rerank by the model's grades", returns=Ranking)
    def _rerank_llm(self, text: str, hits: Ranking) -> Ranking:
        """Score each passage by P(Yes) of its own model call; see `grade`, whose work it shares.

        At most half of the route's calls are used, to leave the rest for later steps. A passage without a
        grade keeps its place, and the graded ones share the other places; scores are then 1 / rank. Source:
        Nogueira et al. 2020, arXiv:2003.06713, section 3.
        """
        if not hits:
            return self._nothing()
        if len(hits) > (most := max(1, self.context.max_calls // 2)):
            self.span.attributes["candidates"] = (
                f"{most} of {len(hits)}: half of the calls that a route may make"
            )
            hits = hits[:most]
        grades: list[PassageGrade] = []
        spent = ""
        for hit in hits:
            left = self.context.max_calls - self.context.calls
            if not spent and self.context.answering and left <= FOR_ANSWER:
                spent = f"the last {FOR_ANSWER} model calls of the route are kept for its answer"
            try:
                grade = None if spent else self.grade(text, hit.passage)
            except BudgetSpent as error:
                spent, grade = str(error), None
            except ModelFailed as error:
                grade = PassageGrade(hit.passage.id, None, "error", str(error))
            grades.append(grade or PassageGrade(hit.passage.id, None, "not scored", spent))
        if all(grade.grade is None for grade in grades):
            raise ModelFailed(f"none of {len(hits)} passages could be graded: {grades[0].why}")
        if any(grade.by == "sampled word" for grade in grades):
            self.span.attributes["graded by"] = "Yes or No as written: the endpoint gives no probabilities"
        states = [{"state": grade.state, "why": grade.why} for grade in grades]
        return self._ordered(hits, [grade.grade for grade in grades], self.context.llm.model, states)

    def _unprepared(self) -> str:
        """Why the token vectors of passages have to be made now; empty where they were made beforehand."""
        try:
            model = self.context.rerankers.blend().tokens
            index = self.context.prepared(Need.TOKENS)
        except Unavailable as error:
            return str(error)
        return "" if index.name == model else f"those in the index are by {index.name}"

    def _nothing(self) -> Ranking:
        self.note("no passage was found to rerank")
        self.span.output = RerankOutput()
        return ()

    def _ordered(
        self,
        hits: Ranking,
        scores: Sequence[float | None],
        name: str,
        details: Sequence[Mapping[str, Any]] = (),
        words: Mapping[str, float] | None = None,
    ) -> Ranking:
        """Sort the hits by score; the span records each hit's place and score before and after, and its
        `details`, further fields of `Reranked`.
        """
        order = by_score(scores)
        moved = []
        for at in order:
            score, hit = scores[at], hits[at]
            after = None if score is None else float(score)
            more = details[at] if details else {}
            moved.append(Reranked(hit.passage.id, at + 1, hit.score, after, **more))
        self.span.output = RerankOutput(name, tuple(moved), words or {}, len(hits))
        unscored = sum(score is None for score in scores)
        if unscored:
            self.note(f"{unscored} of {len(hits)} passages have no score and keep their place")
        elif order == list(range(len(hits))):
            self.note("no passage moved; the order already was the reranker's")
        return tuple(
            Hit(hits[at].passage, 1 / rank if unscored or (score := scores[at]) is None else score)
            for rank, at in enumerate(order, 1)
        )

    def rerank_proximity(self, text: str, hits: Ranking, candidates: int) -> Ranking:
        """Rerank the first `candidates` hits by proximity, then append the rest in their order; see
        `rerank`.
        """
        if hits:
            self._open(EMBEDDED)
        first = self._rerank_proximity(text, hits[:candidates])
        return self.append(first, hits) if len(hits) > len(first) else first

    @step("RERANKER", "rerank by BM25 with word pairs, cosine and MaxSim", returns=Ranking)
    def _rerank_proximity(self, text: str, hits: Ranking) -> Ranking:
        """Rank by the sum of `core.backends.rerankers.proximity.parts`; ties keep their order. If token
        vectors are not prepared, only the first `READ_NOW` are ranked.
        """
        if not hits:
            return self._nothing()
        hits = self._read_now(hits)
        corpus = self.context.corpus
        found = self._blended(text, hits, *self._nearest_pieces(text, hits), windows=True)
        cut = corpus.analyzer.terms
        texts = [cut(searchable(hit.passage.title, hit.passage.text)) for hit in hits]
        raw = {**found.raw, "pairs": pair_scores(corpus.terms(text), texts)}
        shares = parts(raw)
        scores = np.sum(list(shares.values()), axis=0)
        blended = replace(found, scores=scores, raw=raw, parts=shares)
        return self._by_parts(hits, blended, "BM25 with word pairs + cosine + MaxSim weighted by IDF")


def standardised(scores: Sequence[float]) -> NDArray[np.float64]:
    """Scores less their mean, in standard deviations, shape (n,); zeros if all are equal."""
    found = np.asarray(scores, np.float64)
    spread = float(found.std())
    none: NDArray[np.float64] = np.zeros(len(found))
    return (found - found.mean()) / spread if spread else none


def by_score(scores: Sequence[float | None]) -> list[int]:
    """Positions, highest score first, equal ones in their old order; one without a score keeps its place."""
    scored = [at for at, score in enumerate(scores) if score is not None]
    known = iter(sorted(scored, key=lambda at: -(scores[at] or 0.0)))
    return [at if score is None else next(known) for at, score in enumerate(scores)]
