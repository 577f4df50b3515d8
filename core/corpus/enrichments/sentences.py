"""Single sentences of each passage: found by one sentence, read with those around it."""

from __future__ import annotations

from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools
from core.corpus.sections import sentences
from core.domain.text import searchable

USUAL = 90  # characters of a sentence, about


class Sentences(KeyRecipe):
    """A key a sentence, with its document's title.

    Source: LlamaIndex 2023, SentenceWindowNodeParser, which embeds the sentence alone; the title is added.
    """

    name, version = "sentences", 1
    title = "sentences of the passages"
    cost = "one embedding per sentence, about seven sentences per passage"
    uses_llm = False
    words = False

    def entries(self, characters: int, passages: int, /) -> int:
        """By their usual length."""
        return max(passages, characters // USUAL)

    def keys(self, corpus: Corpus, _tools: Tools, /) -> list[Key]:
        """One or more keys a passage."""
        return [
            Key(row, sentence, searchable(passage.title, sentence))
            for row, passage, _ in corpus.everything()
            for sentence in [passage.text[a:b] for a, b in sentences(passage.text, 0, len(passage.text))]
            or [passage.text]
        ]
