"""Learned sparse term weights of every passage, in an inverted index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.backends.base import Rows
from core.backends.embedder import identity
from core.backends.learned_sparse import (
    LearnedSparseIndex,
    SparseEncoder,
    SpladeEncoder,
    TermWeights,
    weighed,
    write_index,
)
from core.corpus.corpus import Corpus
from core.corpus.passages import searchable
from core.enrich.recipe import Tools
from core.errors import Unavailable
from core.settings import Settings

INDEX = "index"


@cache
def _shared(name: str, _identity: str) -> SparseEncoder:
    """One model for every corpus of the process, and another when its files were changed."""
    return SpladeEncoder(name)


def _load(settings: Settings) -> SparseEncoder:
    return _shared(settings.sparse_model, identity(settings.sparse_model))


class LearnedSparse:
    """The weights a SPLADE model gives to the terms of its vocabulary, also those a passage lacks.

    A build that is stopped begins anew: the inverted index is of the whole corpus.
    """

    name, version = "learned_sparse", 1
    title = "learned term weights of its passages"
    cost = "a pass of the model over each passage"
    free = False
    uses_llm = False

    def __init__(self, load: Callable[[Settings], SparseEncoder] = _load) -> None:
        self._load = load

    def model(self, settings: Settings) -> str:
        """The model and, for a folder, the state of its files; Unavailable when none is set."""
        if not settings.sparse_model:
            raise Unavailable(
                "no learned sparse model is set: ROUTESCOPE_SPARSE_MODEL=naver/splade-v3 (or a folder)"
            )
        return identity(settings.sparse_model)

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the index; returns the number of passages."""
        with tools.stages.stage("load the sparse model"):
            encoder = self._load(tools.settings)
        texts = [searchable(passage.title, passage.text) for _, passage, _ in corpus.everything()]
        with tools.stages.stage("weigh terms"):
            write_index(texts, encoder, folder / INDEX, lambda at: tools.stages.tick(at, len(texts)))
        return len(texts)

    def open(self, _corpus: Corpus, folder: Path, settings: Settings, /) -> TermIndex:
        """Search with them."""
        return TermIndex(LearnedSparseIndex(folder / INDEX), self._load(settings))


@dataclass(frozen=True, slots=True)
class Found:
    """Rows by inner product, the weights the question was searched with, and what each adds to a score."""

    rows: Rows
    expansion: TermWeights
    matched: Mapping[int, TermWeights]  # row -> term contributions, which add up to its score


class TermIndex:
    """Inner products of term weights, exactly; safe in threads."""

    def __init__(self, index: LearnedSparseIndex, encoder: SparseEncoder) -> None:
        """Unavailable when the encoder is not the one that made the index."""
        if (encoder.name, list(encoder.terms)) != (index.model, index.terms):
            raise Unavailable(
                f"the term weights are by {index.model} ({len(index.terms)} terms), not by {encoder.name}"
                f" ({len(encoder.terms)}); make them again, or set ROUTESCOPE_SPARSE_MODEL back"
            )
        self._index, self._encoder = index, encoder
        self.name, self.size = encoder.name, index.size

    def search(self, text: str, k: int, explained: int = 0) -> Found:
        """The `k` best rows, ties by row, each sharing a term; the first `explained` with their terms."""
        query = self._encoder.encode_query(text)
        rows = self._index.search(query, k)
        matched = {row: self._index.matched(query, row) for row, _ in rows[:explained]}
        return Found(rows, weighed(self._encoder.terms, query), matched)
