"""Search by keys: texts that stand for passages (a question it answers, a piece of it, itself in context)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files, sparse
from core.backends.base import Mask, Rows, Vector
from core.backends.sparse import BM25Index
from core.backends.terms import analyzer
from core.backends.vector import FaissIndex, write_graph
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEY_BYTES, VECTORS, mapped
from core.corpus.enrichments.recipe import Tools
from core.corpus.manifest import BM25, GRAPH
from core.corpus.unread import count_unread, unread_notes
from core.domain.settings import Settings
from core.domain.types import Hit, Ranking

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
    if len(ordered) >= max(1, tools.settings.exact_below):
        with tools.stages.stage("index vectors"):
            write_graph(mapped(folder / VECTORS), folder / GRAPH)
    return len(ordered)


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


class KeyRecipe(ABC):
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

    def model(self, _settings: Settings, /) -> str:
        """None of its own."""
        return ""

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the index of the keys; returns how many there are."""
        return write(self.keys(corpus, tools), corpus, folder, tools, words=self.words)

    def open(self, corpus: Corpus, folder: Path, _settings: Settings, /) -> KeyIndex:
        """Search by the keys."""
        return KeyIndex(corpus, folder)
