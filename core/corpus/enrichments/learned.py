"""Learned sparse term weights of every passage, in an inverted index."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.backends.base import Mask, Rows
from core.backends.embedder import identity
from core.backends.learned_sparse import (
    STEP,
    LearnedSparseIndex,
    SpladeEncoder,
    TermWeights,
    weighed,
    write_index,
)
from core.backends.named_models import place
from core.corpus.corpus import Corpus
from core.corpus.enrichments.recipe import KeptSteps, Recipe, Tools
from core.corpus.helpers import check
from core.domain.errors import Unavailable
from core.domain.once import Once
from core.domain.settings import Settings
from core.domain.text import searchable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

INDEX = "index"


_models: Once[tuple[str, str], SpladeEncoder] = Once(2)


def load(settings: Settings) -> SpladeEncoder:
    """One model for every corpus of the process, and another when its files were changed."""
    name = settings.sparse_model
    return _models.get((name, identity(name)), lambda: SpladeEncoder(name))


class LearnedSparse(Recipe):
    """The weights a SPLADE model gives to the terms of its vocabulary, also those a passage lacks."""

    name = "learned_sparse"
    title = "learned term weights of the passages"
    cost = "one pass of the model over each passage"

    def __init__(self, load: Callable[[Settings], SpladeEncoder] = load) -> None:
        self._load = load

    def model(self, settings: Settings) -> str:
        """Return the model and, for a folder, the state of its files. Raises Unavailable if none is set."""
        if not settings.sparse_model:
            raise Unavailable(
                "no learned sparse model is set: ROUTESCOPE_SPARSE_MODEL=splade-tiny (or a folder)"
            )
        place(settings.sparse_model, "sparse")
        return identity(settings.sparse_model)

    def about_bytes(self, _characters: int, passages: int, _dim: int, _settings: Settings, /) -> int:
        """Estimate some 150 terms per passage, each with its row and weight."""
        return passages * 150 * 8

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the index; returns the number of passages. What a stopped build weighed is taken over."""
        with tools.stages.stage("load the sparse model"):
            encoder = self._load(tools.settings)
        texts = [searchable(passage.title, passage.text) for _, passage, _ in corpus.everything()]
        with tools.stages.stage("weigh terms"):
            unfinished = folder.parent / f".{self.name}-unfinished"
            kept, model = KeptSteps(unfinished, _read), self.model(tools.settings)

            def content(texts: Sequence[str]) -> bytes:
                return json.dumps([model, *texts]).encode()

            def encode(texts: Sequence[str]) -> csr_matrix:
                return kept.made(content(texts), lambda: step(encoder, texts))

            if tools.helpers is not None:
                steps = [texts[start : start + STEP] for start in range(0, len(texts), STEP)]
                contents = [(content(some), some) for some in steps]
                kept.ahead(f"{__name__}:helped", tools.settings.sparse_model, contents, tools)
            check_stop = partial(tools.stages.tick, total=len(texts))
            write_index(texts, encoder, folder / INDEX, check_stop, encode)
            tools.stages.tick(len(texts), len(texts))
        shutil.rmtree(unfinished)
        return len(texts)

    def open(self, _corpus: Corpus, folder: Path, settings: Settings, /) -> TermIndex:
        """Search with them."""
        return TermIndex(LearnedSparseIndex(folder / INDEX), self._load(settings))


def _read(file: Path) -> csr_matrix:
    from scipy.sparse import load_npz

    return load_npz(file).tocsr()


def step(encoder: SpladeEncoder, texts: Sequence[str]) -> bytes:
    """Return the term weights of some texts, as a file for storage."""
    from scipy.sparse import save_npz

    file = io.BytesIO()
    save_npz(file, encoder.encode(texts), compressed=False)
    return file.getvalue()


def helped(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """Compute `step` of some texts in a worker. Raises Unavailable if the worker has another model."""
    check(payload["name"], payload["identity"])
    return step(load(settings), payload["texts"])


@dataclass(frozen=True, slots=True)
class Found:
    """Rows by inner product, the weights the question was searched with, and what each adds to a score."""

    rows: Rows
    expansion: TermWeights
    matched: Mapping[int, TermWeights]  # row -> term contributions, which add up to its score


class TermIndex:
    """Inner products of term weights, exactly; safe in threads."""

    def __init__(self, index: LearnedSparseIndex, encoder: SpladeEncoder) -> None:
        """Pair an index with its encoder. Raises Unavailable if another encoder built the index."""
        if (encoder.name, list(encoder.terms)) != (index.model, index.terms):
            raise Unavailable(
                f"the term weights are by {index.model} ({len(index.terms)} terms), not by {encoder.name}"
                f" ({len(encoder.terms)}); build them again, or set ROUTESCOPE_SPARSE_MODEL back"
            )
        self._index, self._encoder = index, encoder
        self.name, self.size = encoder.name, index.size

    def search(self, text: str, k: int, explained: int = 0, allowed: Mask | None = None) -> Found:
        """Return the `k` best rows of those `allowed` (None: all), ties by row, each sharing a term; the
        first `explained` with their terms.
        """
        query = self._encoder.encode_query(text)
        rows = self._index.search(query, k, allowed)
        matched = {row: self._index.matched(query, row) for row, _ in rows[:explained]}
        return Found(rows, weighed(self._encoder.terms, query), matched)
