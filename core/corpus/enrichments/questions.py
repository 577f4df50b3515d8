"""Questions that each passage answers, written by a language model: questions are searched by a question."""

from __future__ import annotations

from core.backends.base import LLMRequest
from core.backends.prompting.prompts import QUESTIONS
from core.backends.prompting.replies import reply_lines
from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools

PER_PASSAGE = 4
SHOWN = 2_000  # characters of a passage in the prompt


class Questions(KeyRecipe):
    """Some questions a passage, embedded in its place.

    Source: Vake, Vičič & Tošić 2025, "Hypothetical Prompt Embeddings", doi:10.2139/ssrn.5139335.
    """

    name, version = "questions", 1
    title = "questions written for each passage"
    cost = "one language model call per passage"
    uses_llm = True
    words = False  # a question's words are no evidence of the passage's

    def entries(self, _characters: int, passages: int, /) -> int:
        """As many as are asked for."""
        return PER_PASSAGE * passages

    def keys(self, corpus: Corpus, tools: Tools, /) -> list[Key]:
        """Up to PER_PASSAGE keys a passage; a passage without any is counted, and not found by this route."""
        asked = [
            (row, LLMRequest(QUESTIONS.name, QUESTIONS.fill(values), 25 * PER_PASSAGE))
            for row, passage, _ in corpus.everything()
            for values in [{"title": passage.title, "passage": passage.text[:SHOWN], "n": str(PER_PASSAGE)}]
        ]
        keys = []
        with tools.stages.stage("write questions"):
            replies = tools.ask_all([ask for _, ask in asked])
            for (row, _), reply in zip(asked, replies, strict=True):
                keys += [Key(row, line, line) for line in reply_lines(reply or "") if "?" in line][
                    :PER_PASSAGE
                ]
        if without := len(asked) - len({key.row for key in keys}):
            tools.notes.append(f"{without} of {len(asked)} passages have no question")
        return keys
