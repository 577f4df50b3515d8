"""Search by keys: texts that stand for passages (headings, pieces, what a model writes for each)."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files, sparse
from core.backends.base import LLMRequest, Mask, Rows, Vector
from core.backends.llm.text import looks_refused
from core.backends.prompting.prompts import CONTEXT, QUESTIONS
from core.backends.prompting.replies import reply_lines
from core.backends.sparse import BM25Index
from core.backends.terms import analyzer
from core.backends.vector import FaissIndex, write_graph
from core.corpus.chunk import pieces, sentences
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEY_BYTES, VECTORS, mapped
from core.corpus.enrichments.recipe import Recipe, Tools, siblings
from core.corpus.manifest import BM25, GRAPH
from core.corpus.types import Span, count_unread, unread_notes
from core.domain.settings import Settings
from core.domain.text import searchable
from core.domain.types import Hit, Passage, Ranking

TEXTS, OWNERS = "texts.jsonl", "owners.npy"


@dataclass(frozen=True, slots=True)
class Key:
    """`searched` stands for the passage in `row`; `shown` is what of it the passage does not say itself."""

    row: int
    shown: str
    searched: str


@dataclass(frozen=True, slots=True)
class Match:
    """The passages found, and for each the key that found it."""

    hits: Ranking
    keys: dict[str, str]  # passage id -> the key's `shown`


class Listed:
    """Texts in the form that the embedding of an index reads."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def texts(self) -> Iterator[str]:
        """All of them in order."""
        return iter(self._texts)

    def texts_at(self, rows: Sequence[int]) -> list[str]:
        """Those of `rows`."""
        return [self._texts[row] for row in rows]


def write(keys: Sequence[Key], corpus: Corpus, folder: Path, tools: Tools, *, words: bool) -> int:
    """Write the index of `keys` into `folder`; with `words` also for BM25. Returns how many there are."""
    ordered = sorted(keys, key=lambda key: key.row)
    searched = [key.searched for key in ordered]
    array_files.save(folder / OWNERS, np.array([key.row for key in ordered], np.int32))
    lines = (json.dumps(key.shown, ensure_ascii=False) + "\n" for key in ordered)
    (folder / TEXTS).write_text("".join(lines), encoding="utf-8")
    if words:
        how, tick = analyzer(corpus.info.language), tools.stages.tick
        with tools.stages.stage("index words"):
            sparse.write_index(searched, folder / BM25, how, lambda at: tick(at, len(ordered)))
    with tools.stages.stage("count unread text"):
        found = count_unread(searched, corpus.info.embedder, tools.stages.tick)
    tools.notes += unread_notes(found, corpus.info.embedder)
    with tools.stages.stage("embed"):
        tools.vectors().write(Listed(searched), folder, tools.stages.tick)
    return graph(folder, len(ordered), tools)


def graph(folder: Path, size: int, tools: Tools) -> int:
    """Write a graph of the `size` vectors in `folder` if they are many; return `size`."""
    if size >= max(1, tools.settings.exact_below):
        with tools.stages.stage("index vectors"):
            write_graph(mapped(folder / VECTORS), folder / GRAPH)
    return size


class KeyIndex:
    """Finds passages by their keys: a passage scores what its best key scores. Safe in threads."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        """Open what `write` made in `folder` for `corpus`."""
        self._corpus = corpus
        self._owners: np.ndarray[Any, np.dtype[np.int32]] = np.load(folder / OWNERS, allow_pickle=False)
        lines = (folder / TEXTS).read_text(encoding="utf-8").split("\n")[:-1]
        self._shown: list[str] = [json.loads(line) for line in lines]
        self.size = len(self._owners)
        self._vectors = mapped(folder / VECTORS)
        graph = folder / GRAPH
        self._index = FaissIndex(self._vectors, graph if graph.exists() else None) if self.size else None
        self._words = BM25Index(folder / BM25, self.size) if (folder / BM25).exists() else None

    def search_dense(self, vector: Vector, k: int, allowed: Mask | None = None) -> Match:
        """Return the `k` passages with the keys nearest to `vector`, shape (dim,), of the rows `allowed`
        (None: all).
        """
        if self._index is None:
            return Match((), {})
        index = self._index
        if allowed is None:
            return self._match(lambda wanted: index.search(vector, wanted), k)
        mine = allowed[self._owners]
        return self._match(lambda wanted: index.search_within(vector, wanted, mine), k)

    def search_words(self, text: str, k: int, allowed: Mask | None = None) -> Match:
        """Return the `k` passages with the keys of highest BM25 score, of the rows `allowed` (None: all); a
        key without a common term does not count.
        """
        if self._words is None:
            return Match((), {})
        words, mine = self._words, None if allowed is None else allowed[self._owners]
        return self._match(lambda wanted: words.search(text, wanted, mine), k)

    def best(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        """Return the inner product of `vector` with the nearest key of each of `rows`, shape (n,); -1 without
        keys.
        """
        first, last = (np.searchsorted(self._owners, rows, side).tolist() for side in ("left", "right"))
        products = ((self._vectors[a:b] * vector).sum(axis=1) for a, b in zip(first, last, strict=True))
        return np.array([found.max(initial=-1.0) for found in products], np.float32)

    def scored(self, vector: Vector, row: int) -> list[tuple[str, float]]:
        """Return the keys of the passage in `row` as shown, in order, each with its inner product."""
        a, b = np.searchsorted(self._owners, [row, row + 1], "left").tolist()
        scores = (self._vectors[a:b] * vector).sum(axis=1).tolist()
        return list(zip(self._shown[a:b], scores, strict=True))

    def nearest(self, vector: Vector, k: int) -> dict[int, list[int]]:
        """By row, which keys of its passage, from 0, are among the `k` nearest to `vector`, nearest first."""
        found: dict[int, list[int]] = {}
        for at, _ in self._index.search(vector, min(k, self.size)) if self._index is not None else ():
            row = int(self._owners[at])
            found.setdefault(row, []).append(at - int(np.searchsorted(self._owners, row, "left")))
        return found

    def _match(self, search: Any, k: int) -> Match:
        """Search for more and more keys until `k` different passages have one, or no key is left."""
        wanted = 2 * k
        while True:
            found: Rows = search(min(wanted, self.size))
            best: dict[int, tuple[float, int]] = {}
            owners = self._owners[[at for at, _ in found]].tolist() if found else ()
            for row, (at, score) in zip(owners, found, strict=True):
                best.setdefault(row, (score, at))
            if len(best) >= k or len(found) < wanted or wanted >= self.size:
                break
            wanted *= 4
        rows = sorted(best, key=lambda row: (-best[row][0], row))[:k]
        passages = self._corpus.passages(rows)
        hits = tuple(Hit(passage, best[row][0]) for row, passage in zip(rows, passages, strict=True))
        return Match(hits, {p.id: self._shown[best[row][1]] for row, p in zip(rows, passages, strict=True)})


class KeyRecipe(Recipe):
    """An enrichment that is an index of keys."""

    words = True  # whether BM25 searches the keys too

    @abstractmethod
    def keys(self, corpus: Corpus, tools: Tools, /) -> Sequence[Key]:
        """Return the keys of a corpus' passages."""

    def entries(self, _characters: int, passages: int, /) -> int:
        """About how many keys there will be."""
        return passages

    def about_bytes(self, characters: int, passages: int, dim: int, _settings: Settings, /) -> int:
        """Estimate a vector and a hash for each key, and the texts with their BM25 index, which take three
        times as much as the passages' (measured: `support`, HotpotQA).
        """
        return self.entries(characters, passages) * (4 * dim + KEY_BYTES) + 3 * characters

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the index of the keys; returns how many there are."""
        return write(self.keys(corpus, tools), corpus, folder, tools, words=self.words)

    def open(self, corpus: Corpus, folder: Path, _settings: Settings, /) -> KeyIndex:
        """Search by the keys."""
        return KeyIndex(corpus, folder)


# A line is looked at once: text is anybody's, and must not take time with its square.
_HEADING = re.compile(r"^(#{1,6})[^\S\n]+(?=\S)(.*)$", re.MULTILINE)
NEAR = 160  # characters of each neighbour


class Headings(KeyRecipe):
    """The heading path down to a passage, the end of the one before it and the beginning of the next."""

    name = "headings"
    title = "headings and neighbours of the passages"
    cost = "one more embedding per passage"

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

    name = "children"
    title = "small pieces of the passages"
    cost = "one embedding per piece, about four pieces per passage"

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

    name = "sentences"
    title = "sentences of the passages"
    cost = "one embedding per sentence, about seven sentences per passage"
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

    name = "contexts"
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

    name = "questions"
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

    name = "expanded"
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
