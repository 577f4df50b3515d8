"""Steps that keep of a passage what matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.steps.retrieve import Retrieve
from core.steps.step import step
from core.types import Ranking

STRIP = (60, 220)  # characters: about one or two sentences, as the paper's strips


@dataclass(frozen=True, slots=True)
class Strip:
    """A piece of a passage with its similarity to the question, and whether it was kept."""

    id: str
    text: str
    score: float
    kept: bool


class Refine(Retrieve):
    """Decompose, filter, recompose."""

    @step("EVALUATOR", "keep the strips that matter")
    def strips(self, text: str, hits: Ranking, floor: float) -> tuple[Strip, ...]:
        """Cut passages into strips and keep those whose cosine with the question is at least `floor`, and
        each passage's best.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4; there a trained evaluator scores the
        strips, here the embedder does.
        """
        from semantic_text_splitter import TextSplitter

        splitter = TextSplitter(STRIP)
        pieces = [(hit.passage.id, piece) for hit in hits for piece in splitter.chunks(hit.passage.text)]
        if not pieces:
            return ()
        scores = self.context.embedder.embed([piece for _, piece in pieces]) @ self.embed(text)
        best: dict[str, float] = {}
        for (id, _), score in zip(pieces, scores, strict=True):
            best[id] = max(best.get(id, -1.0), float(score))
        return tuple(
            Strip(id, piece, float(score), bool(score >= floor or score == np.float32(best[id])))
            for (id, piece), score in zip(pieces, scores, strict=True)
        )


def recompose(strips: tuple[Strip, ...]) -> dict[str, str]:
    """The kept strips of each passage, in their old order."""
    kept: dict[str, list[str]] = {}
    for strip in strips:
        if strip.kept:
            kept.setdefault(strip.id, []).append(strip.text)
    return {id: " ".join(texts) for id, texts in kept.items()}
