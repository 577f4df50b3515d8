"""Steps that keep of a passage what matters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from core.corpus.passages import searchable
from core.steps.retrieve import Retrieve
from core.steps.step import step
from core.types import Ranking

if TYPE_CHECKING:
    from semantic_text_splitter import TextSplitter

STRIP = (60, 220)  # characters: about one or two sentences, as the paper's strips


@dataclass(frozen=True, slots=True)
class Strip:
    """A piece of a passage, its similarity to the question if that was computed, and whether it was kept."""

    id: str
    text: str
    score: float | None
    kept: bool


class Refine(Retrieve):
    """Decompose, filter, recompose."""

    @step("EVALUATOR", "keep the strips that matter")
    def strips(self, text: str, hits: Ranking, floor: float, titled: bool = False) -> tuple[Strip, ...]:
        """Cut passages into strips and keep those whose cosine with the question is at least `floor`, and
        each passage's best.

        `titled` compares each strip with its passage's title before it, as passages are embedded for search:
        a strip alone often does not say what it is about.
        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4; there a trained evaluator scores the
        strips, here the embedder does.
        """
        pieces = [(hit.passage, piece) for hit in hits for piece in cut(hit.passage.text)]
        if not pieces:
            return ()
        texts = [searchable(passage.title if titled else "", piece) for passage, piece in pieces]
        scores = self.context.embedder.embed(texts) @ self.embed(text)
        best: dict[str, float] = {}
        for (passage, _), score in zip(pieces, scores, strict=True):
            best[passage.id] = max(best.get(passage.id, -1.0), float(score))
        return tuple(
            Strip(passage.id, piece, float(score), bool(score >= floor or float(score) == best[passage.id]))
            for (passage, piece), score in zip(pieces, scores, strict=True)
        )


def cut(text: str) -> list[str]:
    """The strips of a text in order: about a sentence or two, or rows of a table."""
    return _splitter().chunks(text)


@cache
def _splitter() -> TextSplitter:
    from semantic_text_splitter import TextSplitter

    return TextSplitter(STRIP)


def recompose(strips: tuple[Strip, ...]) -> dict[str, str]:
    """The kept strips of each passage, in their old order."""
    kept: dict[str, list[str]] = {}
    for strip in strips:
        if strip.kept:
            kept.setdefault(strip.id, []).append(strip.text)
    return {id: " ".join(texts) for id, texts in kept.items()}
