"""A sentence before each passage, written by a language model: in which document it stands, and where."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.backends.base import LLMRequest
from core.backends.llm.text import looks_refused
from core.backends.prompting.prompts import CONTEXT
from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools, siblings
from core.domain.text import searchable
from core.domain.types import Passage

DOCUMENT = 6_000  # characters of a document in one prompt; a longer one is read in parts
HEAD = 400  # of its beginning, which the other parts are told too
POINTER = 240  # characters of a passage that tell which one is meant: the document above has all of it
WORDS = 40  # tokens of a context


@dataclass(slots=True)
class Part:
    """Passages of one document that are read together, and the document's beginning if they are not it."""

    head: str
    passages: list[tuple[int, Passage]] = field(default_factory=list)


class Contexts(KeyRecipe):
    """A context a passage, searched in front of it and never shown as its text.

    Source: Anthropic 2024, "Introducing Contextual Retrieval".
    """

    name, version = "contexts", 1
    title = "context written for each passage"
    cost = "one language model call per passage, with its document in the prompt"
    uses_llm = True

    def keys(self, corpus: Corpus, tools: Tools, /) -> list[Key]:
        """Return one key per passage; if the model failed, the passage alone, which is counted."""
        asked = [(row, passage, ask) for part in parts(corpus) for row, passage, ask in _requests(part)]
        keys = []
        with tools.stages.stage("write contexts"):
            replies = tools.ask_all([ask for _, _, ask in asked])
            for (row, passage, _), reply in zip(asked, replies, strict=True):
                context = "" if reply is None or looks_refused(reply) else " ".join(reply.split())
                keys.append(Key(row, context, f"{context} {searchable(passage.title, passage.text)}".strip()))
        if without := sum(not key.shown for key in keys):
            tools.notes.append(f"{without} of {len(keys)} passages have no context")
        return keys


def parts(corpus: Corpus) -> list[Part]:
    """Split each document into as few parts of whole passages as a prompt of DOCUMENT characters allows."""
    found: list[Part] = []
    for group in siblings(corpus):
        length = DOCUMENT + 1
        for row, passage in group:
            if length + len(passage.text) > DOCUMENT:
                first = group[0][1]
                found.append(Part("" if passage is first else first.text[:HEAD]))
                length = 0
            found[-1].passages.append((row, passage))
            length += len(passage.text) + 2
    return found


def _requests(part: Part) -> list[tuple[int, Passage, LLMRequest]]:
    document = "\n\n".join(passage.text for _, passage in part.passages)
    if part.head:
        document = f"{part.head}\n[...]\n{document}"
    return [
        (
            row,
            passage,
            LLMRequest(
                CONTEXT.name,
                CONTEXT.fill(
                    {"title": passage.title, "document": document, "passage": passage.text[:POINTER]}
                ),
                WORDS,
                reuse_prefix=True,
            ),
        )
        for row, passage in part.passages
    ]
