"""Learned sparse retrieval: a model weighs the terms of its vocabulary, an inverted index adds them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files
from core.backends.admission import ModelQueue
from core.backends.base import Mask, Rows
from core.backends.named_models import place
from core.backends.sparse import top_k
from core.backends.weights import clean, load
from core.domain import system
from core.domain.errors import ModelFailed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

WEIGHTS, ROWS, STARTS, TERMS = "weights.npy", "rows.npy", "starts.npy", "terms.json"
BATCH = 8
STEP = 4 * BATCH  # passages between two looks at Stop
TermWeights = list[tuple[str, float]]  # heaviest first, ties by term


class SpladeEncoder:
    """A SparseEncoder of sentence-transformers, by name or folder.

    Source of the model family: Formal, Piwowarski & Clinchant 2021, "SPLADE", arXiv:2107.05720.
    """

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or is of another kind."""
        self.name = name
        self._model = load("SparseEncoder", place(name, "sparse"))
        size = self._model.encode_query("").shape[0]  # the library's own answer may be the hidden size
        # The output layer may be padded beyond the vocabulary: those columns have no name.
        names = self._model.tokenizer.convert_ids_to_tokens(list(range(size)))
        self.terms: list[str] = [name or f"[{at}]" for at, name in enumerate(names)]
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads

    def encode(self, texts: Sequence[str]) -> csr_matrix:
        """Weights of passages, shape (n, terms)."""
        return self._weigh(self._model.encode_document, texts)

    def encode_query(self, text: str) -> csr_matrix:
        """Weights of a question, shape (1, terms)."""
        return self._weigh(self._model.encode_query, [text])

    def expansion(self, text: str) -> TermWeights:
        """Return the weighted terms of a question."""
        return weighed(self.terms, self.encode_query(text))

    def _weigh(self, encode: Callable[..., Any], texts: Sequence[str]) -> csr_matrix:
        from scipy.sparse import csr_matrix

        if not texts:
            return csr_matrix((0, len(self.terms)), dtype=np.float32)
        with self._turns.slot():
            found = encode(
                [clean(text) for text in texts],
                batch_size=BATCH,
                show_progress_bar=False,
                convert_to_tensor=True,
                convert_to_sparse_tensor=True,
                save_to_cpu=True,
            ).coalesce()
        rows, columns = found.indices().numpy()
        weights = found.values().float().numpy()
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ModelFailed(f"{self.name} gave weights that are negative or not finite")
        return csr_matrix((weights, (rows, columns)), shape=tuple(found.shape), dtype=np.float32)


class LearnedSparseIndex:
    """Inner products of a question's weights with all passages', exactly; safe in threads.

    The files are mapped, not read: for each term the rows that have it and their weights.
    """

    def __init__(self, folder: Path) -> None:
        """Open the index in `folder`."""
        self._weights, self._rows, self._starts = (
            system.mapped(folder / name) for name in (WEIGHTS, ROWS, STARTS)
        )
        stored = json.loads((folder / TERMS).read_text(encoding="utf-8"))
        self.model: str = stored["model"]
        self.size: int = stored["size"]
        self.terms: list[str] = stored["terms"]

    def search(self, query: csr_matrix, k: int, allowed: Mask | None = None) -> Rows:
        """Return the `k` best rows for a question's weights, shape (1, terms), among those `allowed` (None:
        all), ties by row; each shares a term.
        """
        return top_k(self.scores(query), k, allowed)

    def scores(self, query: csr_matrix) -> NDArray[np.float32]:
        """Return the inner product with every passage, shape (size,)."""
        total = np.zeros(self.size, np.float32)
        for column, weight in zip(query.indices, query.data, strict=True):
            rows, weights = self._postings(column)
            total[rows] += weights * weight
        return total

    def matched(self, query: csr_matrix, row: int) -> TermWeights:
        """Return each term's contribution to the score of `row`; they sum to the score."""
        parts = []
        for column, weight in zip(query.indices, query.data, strict=True):
            rows, weights = self._postings(column)
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                parts.append((self.terms[column], float(weights[at] * weight)))
        return _ordered(parts)

    def _postings(self, column: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rows that have a term, ascending, and its weight in each."""
        first, last = self._starts[column], self._starts[column + 1]
        return self._rows[first:last], self._weights[first:last]


def write_index(
    texts: Sequence[str],
    encoder: SpladeEncoder,
    folder: Path,
    check: Callable[[int], None] = lambda _: None,
    encode: Callable[[Sequence[str]], csr_matrix] | None = None,
) -> None:
    """Build the index of `texts`, in row order, in a new `folder`; `check` is called with the row reached.
    `encode` replaces the encoder.
    """
    from scipy.sparse import csr_matrix, vstack

    blocks = [csr_matrix((0, len(encoder.terms)), dtype=np.float32)]
    for start in range(0, len(texts), STEP):
        check(start)
        blocks.append((encode or encoder.encode)(texts[start : start + STEP]))
    by_term = vstack(blocks).tocsc()
    by_term.sort_indices()
    folder.mkdir()
    array_files.save(folder / WEIGHTS, by_term.data.astype(np.float32))
    array_files.save(folder / ROWS, by_term.indices.astype(np.int32))
    array_files.save(folder / STARTS, by_term.indptr.astype(np.int64))
    stored = {"model": encoder.name, "size": len(texts), "terms": list(encoder.terms)}
    (folder / TERMS).write_text(json.dumps(stored, ensure_ascii=False), encoding="utf-8")


def weighed(terms: Sequence[str], row: csr_matrix) -> TermWeights:
    """Return the weights of one text, shape (1, terms), by term."""
    return _ordered((terms[at], float(w)) for at, w in zip(row.indices, row.data, strict=True))


def _ordered(parts: Any) -> TermWeights:
    return sorted(parts, key=lambda part: (-part[1], part[0]))
