"""Vectors in one bit or one byte a dimension: a first pass over a 32nd or a quarter of the memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask, Matrix, Rows, Vector

Kind = Literal["binary", "int8"]
BLOCK = 65_536  # vectors coded at a time


class QuantisedIndex:
    """Codes of vectors, searched whole; equal scores come in the order of rows. Safe in threads."""

    def __init__(self, blocks: Iterable[Matrix], dim: int, kind: Kind) -> None:
        """Code unit vectors that come in `blocks`, shape (n, dim) each."""
        self.kind, self.dim, self.size = kind, dim, 0
        if kind == "binary":
            made = [signs(block) for block in blocks]
            self._signs = np.concatenate(made) if made else signs(np.empty((0, self.dim), np.float32))
            self.size, self.bytes = len(self._signs), self._signs.nbytes
            return
        import faiss

        self._bytes: Any = faiss.IndexScalarQuantizer(
            self.dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        for block in blocks:
            if not self._bytes.is_trained:  # the range of each dimension, which the first block stands for
                self._bytes.train(np.ascontiguousarray(block))
            self._bytes.add(np.ascontiguousarray(block))
        self.size = self._bytes.ntotal
        self.bytes = self.size * self.dim

    def search(self, vector: Vector, k: int, allowed: Mask | None = None) -> Rows:
        """Return the `k` rows whose codes are nearest to `vector`, shape (dim,), among those `allowed` (None:
        all).

        Scores: for "binary" the share of dimensions with the same sign, doubled, minus 1; for "int8" the
        inner product with the decoded vectors. Source: Charikar 2002, "Similarity Estimation Techniques from
        Rounding Algorithms", doi:10.1145/509907.509965; Yamada, Asai & Hajishirzi 2021, "Efficient Passage
        Retrieval with Hashing", arXiv:2106.00882, section 3.2, for both passes.
        """
        if not self.size:
            return []
        if self.kind == "binary":
            differing = np.bitwise_count(self._signs ^ signs(vector[None, :])).sum(axis=1, dtype=np.int64)
            scores = 1 - 2 * differing / self.dim
            if allowed is not None:
                scores = np.where(allowed, scores, -np.inf)
            rows = np.argsort(-scores, kind="stable")[: min(k, self.size)]
            return [(int(row), float(scores[row])) for row in rows if np.isfinite(scores[row])]
        params = None
        if allowed is not None:
            import faiss

            library: Any = faiss  # its stubs know neither argument
            bits = np.packbits(allowed, bitorder="little")
            params = library.SearchParameters(sel=library.IDSelectorBitmap(bits))
        query = np.ascontiguousarray(vector[None, :])
        found, ids = self._bytes.search(query, min(k, self.size), params=params)
        pairs = [(int(row), float(score)) for row, score in zip(ids[0], found[0], strict=True) if row >= 0]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def signs(vectors: Matrix) -> NDArray[np.uint64]:
    """Pack the signs of vectors into bits, 1 if above 0: shape (n, dim) -> (n, words of 64 bits)."""
    bits = np.packbits(np.asarray(vectors) > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)
