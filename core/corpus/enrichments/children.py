"""Small pieces of each passage: found by a sentence or two, returned as the section they stand in."""

from __future__ import annotations

from core.corpus.chunk import pieces
from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools
from core.domain.text import searchable

SIZE = 200  # characters of a piece at most, about two sentences


class Children(KeyRecipe):
    """Pieces of at most SIZE characters, cut at sentences, each with its document's title."""

    name, version = "children", 1
    title = "small pieces of the passages"
    cost = "one embedding per piece, about four pieces per passage"
    uses_llm = False

    def entries(self, characters: int, passages: int, /) -> int:
        """Sentences fill a piece to two thirds."""
        return max(passages, characters * 3 // (2 * SIZE))

    def keys(self, corpus: Corpus, _tools: Tools, /) -> list[Key]:
        """Return several keys per passage."""
        return [
            Key(row, piece, searchable(passage.title, piece))
            for row, passage, _ in corpus.everything()
            for piece in [passage.text[a:b] for a, b in pieces(passage.text, SIZE)] or [passage.text]
        ]
