"""Enrichments that are keys of passages: headings, pieces, sentences, and what a model writes for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from core.backends.base import LLMRequest
from core.backends.llm.text import looks_refused
from core.backends.prompting.prompts import CONTEXT, QUESTIONS
from core.backends.prompting.replies import reply_lines
from core.corpus.chunk import pieces
from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools, siblings
from core.corpus.sections import sentences
from core.corpus.types import Span
from core.domain.text import searchable
from core.domain.types import Passage

# A line is looked at once: text is anybody's, and must not take time with its square.
_HEADING = re.compile(r"^(#{1,6})[^\S\n]+(?=\S)(.*)$", re.MULTILINE)
NEAR = 160  # characters of each neighbour


class Headings(KeyRecipe):
    """The heading path down to a passage, the end of the one before it and the beginning of the next."""

    name, version = "headings", 1
    title = "headings and neighbours of the passages"
    cost = "one more embedding per passage"
    uses_llm = False

    def keys(self, corpus: Corpus, _tools: Tools, /) -> list[Key]:
        """Return one key per passage."""
        keys = []
        for group in siblings(corpus):
            passages = [passage for _, passage in group]
            ends = ["", *(one.text[-NEAR:] for one in passages)]
            begins = [*(one.text[:NEAR] for one in passages[1:]), ""]
            for (row, passage), path, end, begin in zip(
                group, heading_paths(passages), ends, begins, strict=False
            ):
                context, around = " ".join(" > ".join(path).split()), " ".join(f"{end} {begin}".split())
                shown = " … ".join(part for part in (context, around) if part)
                searched = f"{context} {searchable(passage.title, passage.text)} {around}".strip()
                keys.append(Key(row, shown, searched))
        return keys


def heading_paths(passages: list[Passage]) -> list[list[str]]:
    """Return the Markdown headings above the start of each passage, outermost first.

    `passages` are those of one document in reading order. A heading inside a passage is part of its text
    already.
    """
    path: dict[int, str] = {}
    found = []
    for passage in passages:
        found.append([path[level] for level in sorted(path)])
        for mark, line in _HEADING.findall(passage.text):
            if not (text := line.rstrip().rstrip("#").rstrip()):
                continue
            path = {level: name for level, name in path.items() if level < len(mark)}
            path[len(mark)] = text
    return found


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
        return _of_pieces(corpus, lambda text: pieces(text, SIZE))


def _of_pieces(corpus: Corpus, cut: Callable[[str], Iterable[Span]]) -> list[Key]:
    """Return a key for each piece of each passage, or for a passage that has none."""
    return [
        Key(row, piece, searchable(passage.title, piece))
        for row, passage, _ in corpus.everything()
        for piece in [passage.text[a:b] for a, b in cut(passage.text)] or [passage.text]
    ]


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
        return _of_pieces(corpus, lambda text: sentences(text, 0, len(text)))


DOCUMENT = 6_000  # characters of a document in one prompt; a longer one is read in parts
HEAD = 400  # of its beginning, which the other parts are told too
POINTER = 240  # characters of a passage that tell which one is meant: the document above has all of it
WORDS = 40  # tokens of a context


Group = list[tuple[int, Passage]]  # passages with their rows


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
        asked = [one for head, group in parts(corpus) for one in _requests(head, group)]
        keys = []
        with tools.stages.stage("write contexts"):
            replies = tools.ask_all([ask for _, _, ask in asked])
            for (row, passage, _), reply in zip(asked, replies, strict=True):
                context = "" if reply is None or looks_refused(reply) else " ".join(reply.split())
                keys.append(Key(row, context, f"{context} {searchable(passage.title, passage.text)}".strip()))
        if without := sum(not key.shown for key in keys):
            tools.notes.append(f"{without} of {len(keys)} passages have no context")
        return keys


def parts(corpus: Corpus) -> list[tuple[str, Group]]:
    """Split each document into as few parts of whole passages as a prompt of DOCUMENT characters allows, each
    with the document's beginning if it does not have it.
    """
    found: list[tuple[str, Group]] = []
    for group in siblings(corpus):
        length, (_, first) = DOCUMENT + 1, group[0]
        for row, passage in group:
            if length + len(passage.text) > DOCUMENT:
                found.append(("" if passage is first else first.text[:HEAD], []))
                length = 0
            found[-1][1].append((row, passage))
            length += len(passage.text) + 2
    return found


def _requests(head: str, group: Group) -> Iterator[tuple[int, Passage, LLMRequest]]:
    document = "\n\n".join(passage.text for _, passage in group)
    document = f"{head}\n[...]\n{document}" if head else document
    for row, passage in group:
        values = {"title": passage.title, "document": document, "passage": passage.text[:POINTER]}
        yield row, passage, LLMRequest(CONTEXT.name, CONTEXT.fill(values), WORDS, reuse_prefix=True)


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
                lines = [line for line in reply_lines(reply or "") if "?" in line]
                keys += [Key(row, line, line) for line in lines[:PER_PASSAGE]]
        if without := len(asked) - len({key.row for key in keys}):
            tools.notes.append(f"{without} of {len(asked)} passages have no question")
        return keys


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
