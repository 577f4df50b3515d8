"""Steps that search what was said before, and put it to use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.backends.base import Vector
from core.domain.outputs import Decision, Embedding, Recalled, Rewrite, Search
from core.domain.types import Hit, Passage, Ranking, Remembered
from core.steps.retrieve import Retrieve
from core.steps.step import step


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


class Remember(Retrieve):
    """The conversation as a second index."""

    @step("RETRIEVER", "search the conversation", returns=Ranking)
    def remembered(self, text: str, decay: float, relevance: float, k: int) -> Ranking:
        """Return the `k` earlier turns that weigh most for `text`; the span records each weight."""
        turns = self.context.memory
        self.span.attributes["turns"] = len(turns)
        self.span.output = Search((text,))
        if not turns:
            self.span.attributes["note"] = (
                "no remembered turns: no session with turns and no conversation given"
            )
            return ()
        question = self.embed(text)
        vectors = self.context.turn_vectors.embed(self.context.embedder, [turn.text for turn in turns])
        similarities = [float(similarity) for similarity in vectors @ question]
        weighed = weigh(similarities, decay, relevance)
        passages = {passage.id: passage for passage in map(as_passage, turns)}
        recalls = [Recalled(id, similarities[n], *weighed[n]) for n, id in enumerate(passages)]
        counting = [recall for recall in recalls if recall.score > 0]
        if not counting:
            self.span.attributes["note"] = (
                f"none of {len(turns)} turns has anything in common with the question"
            )
        best = sorted(counting, key=lambda recall: (-recall.score, recall.id))[:k]
        self.span.output = Search((text,), recalled=tuple(best))
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
        why = (
            "the question by itself is near a passage: what was recalled is not used"
            if alone
            else "the question by itself is near no passage: what was recalled is searched with"
        )
        self.span.output = Decision(
            "stands alone" if alone else "needs what was said",
            ("stands alone", "needs what was said"),
            why,
            best,
            float(threshold),
        )
        return alone

    @step("CHAIN", "put recalled turns before the question", returns=str)
    def in_context(self, text: str, recalled: Ranking) -> str:
        """Join the recalled turns, oldest first, and `text` into a text for BM25 and for the answer."""
        order = {as_passage(turn).id: place for place, turn in enumerate(self.context.memory)}
        turns = sorted(recalled, key=lambda hit: order[hit.passage.id])
        joined = "\n".join([*(hit.passage.text for hit in turns), text])
        self.span.output = Rewrite(text, (joined,), "context")
        return joined

    @step("EMBEDDING", "mean with recalled turns", returns=Vector)
    def drawn_to(self, text: str, recalled: Ranking, weight: float) -> Vector:
        """Add `weight` times each turn's vector times its score to the question's vector; length 1, shape
        (dim,).

        Source: Rocchio 1971, "Relevance Feedback in Information Retrieval", with turns as the relevant
        documents.
        """
        vectors = self.context.turn_vectors.embed(
            self.context.embedder, [hit.passage.text for hit in recalled]
        )
        scores = np.array([hit.score for hit in recalled], np.float32)
        self.span.output = Embedding((text,), recalled=tuple(hit.passage.id for hit in recalled))
        mean: Vector = self.embed(text) + np.float32(weight) * (scores @ vectors)
        return mean / max(float(np.linalg.norm(mean)), 1e-12)
