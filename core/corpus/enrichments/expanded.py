"""Passages followed by the questions they answer, so that a question's words match them."""

from __future__ import annotations

from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key
from core.corpus.enrichments.questions import Questions
from core.corpus.enrichments.recipe import Tools
from core.domain.text import searchable


class Expanded(Questions):
    """A key a passage: its text, then the questions written for it. Those that the enrichment "questions" has
    are recalled, so that they cost nothing again.

    Source: Nogueira, Yang, Lin & Cho 2019, "Document Expansion by Query Prediction", arXiv:1904.08375.
    """

    name, version = "expanded", 1
    title = "passages with the questions written for each"
    cost = "one language model call per passage, none where its questions are there"
    words = True

    def entries(self, _characters: int, passages: int, /) -> int:
        """One a passage."""
        return passages

    def keys(self, corpus: Corpus, tools: Tools, /) -> list[Key]:
        """Return one key per passage; without a written question, the passage alone, which is counted."""
        questions: dict[int, list[str]] = {}
        for key in super().keys(corpus, tools):
            questions.setdefault(key.row, []).append(key.shown)
        found = ((row, passage, " ".join(questions.get(row, ()))) for row, passage, _ in corpus.everything())
        return [
            Key(row, asked, f"{searchable(passage.title, passage.text)} {asked}".strip())
            for row, passage, asked in found
        ]
