"""Dense search with FAISS: exact below a size, a graph above it. Both stay in their mapped files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask, Matrix, Rows, Vector

if TYPE_CHECKING:
    import faiss


LINKS, SEARCH_EFFORT = 32, 200  # HNSW: Malkov & Yashunin 2016, arXiv:1603.09320
# On 13,540 vectors of texts recall@100 is .994, and .997 with 200, which takes 1.6 times as long.
BUILD_EFFORT = 120
BLAS_FROM = 4  # queries in a batch; below it a scan a query is quicker (measured at 30k to 100k passages)
THREADS_FROM = 64  # queries in a batch that are worth more than one thread
MARGIN = 8  # candidates fetched beyond k, so that equal scores at the edge are seen
COPIED = 65_536  # vectors turned into half precision at a time
WRITTEN = 1 << 20  # bytes of a graph written at a time
Found = np.ndarray[Any, np.dtype[np.int64]]
SAME = 1e-6  # scores this close may be equal but for rounding


class FaissIndex:
    """Inner-product search over unit vectors; equal scores come in the order of rows, in batches as alone.

    FAISS rounds differently in a scan and in a matrix product, so the scores of what it finds are computed
    again, one way. Safe to call from several threads.
    """

    def __init__(self, vectors: Matrix, graph: Path | None = None) -> None:
        """Index `vectors` (n, dim); with `graph`, through the HNSW graph stored there."""
        import faiss

        self._faiss = faiss
        self._vectors = vectors
        self.size, self.dim = vectors.shape
        self._graph = None if graph is None else faiss.read_index(str(graph), faiss.IO_FLAG_MMAP_IFC)

    @property
    def kind(self) -> str:
        """ "flat" when search is exact, else "hnsw"."""
        return "flat" if self._graph is None else "hnsw"

    def search(self, vector: Vector, k: int, *, effort: int = 0) -> Rows:
        """Return the `k` rows of highest inner product with `vector`, shape (dim,). `effort` is the graph's
        efSearch, 0 for the default.
        """
        return self._search(vector[None, :], k, self._graph, effort)[0]

    def search_many(self, vectors: Matrix, k: int) -> list[Rows]:
        """`search` for each row of `vectors` (n, dim), sharing the reading of the index."""
        return self._search(vectors, k, self._graph)

    def near_many(self, vectors: Matrix, k: int) -> list[Rows]:
        """`search_many`, but for equal scores at the end, of which some are left out: thousands may be equal,
        and to look for all of them for each of many vectors takes the square of the time.
        """
        queries = np.ascontiguousarray(vectors, np.float32)
        found = self._candidates(queries, min(self.size, k), self._graph)
        return [self._ranked(query, rows) for query, rows in zip(queries, found, strict=True)]

    def search_exact(self, vector: Vector, k: int) -> Rows:
        """`search` without the graph: what an approximate search is measured against."""
        return self._search(vector[None, :], k)[0]

    def search_within(self, vector: Vector, k: int, allowed: Mask) -> Rows:
        """Return the exact `k` rows of highest inner product among those `allowed`: walking a graph past
        excluded rows finds too little if few are allowed.
        """
        rows = np.flatnonzero(allowed)
        if k < 1 or not len(rows):
            return []
        query = np.asarray(vector, np.float32)
        near = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), COPIED):
            near[start : start + COPIED] = self._vectors[rows[start : start + COPIED]] @ query
        if len(rows) > k:  # a product rounds otherwise than the scores that count, by less than SAME
            edge = np.partition(near, len(rows) - k)[len(rows) - k]
            rows = rows[near >= edge - 2 * SAME]
        return self._ranked(query, rows)[:k]

    def recall(self, sample: Found, k: int = 10) -> float:
        """Return the share of the exact `k` nearest that `search` finds, with the rows in `sample` as
        questions.
        """
        queries = self._vectors[sample]
        pairs = zip(self._search(queries, k, self._graph), self._search(queries, k), strict=True)
        shares = [len(dict(found).keys() & dict(truth).keys()) / max(1, len(truth)) for found, truth in pairs]
        return float(np.mean(shares)) if shares else 1.0

    def _search(
        self, vectors: Matrix, k: int, graph: faiss.Index | None = None, effort: int = 0
    ) -> list[Rows]:
        k = min(k, self.size)
        queries = np.ascontiguousarray(vectors, np.float32)
        if k < 1 or not len(queries):
            return [[] for _ in queries]
        found = self._candidates(queries, min(self.size, k + MARGIN), graph, effort)
        results = [self._ranked(query, rows) for query, rows in zip(queries, found, strict=True)]
        for i, ranked in enumerate(results):
            fetched = k + MARGIN
            # Equal scores may go on past what was fetched: look further until they end.
            while k <= len(ranked) and ranked[-1][1] >= ranked[k - 1][1] - SAME and fetched < self.size:
                fetched *= 8
                rows = self._candidates(queries[i : i + 1], min(self.size, fetched), graph, effort)[0]
                ranked = self._ranked(queries[i], rows)
            results[i] = ranked[:k]
        return results

    def _candidates(self, queries: Matrix, k: int, graph: faiss.Index | None, effort: int = 0) -> Found:
        """Rows for each query, shape (n, k), in FAISS's order; -1 where the graph, if given, found fewer."""
        faiss = self._faiss
        # For each call, as the count belongs to the calling thread. A second thread slows one query down,
        # hardly helps a batch of 20, and makes it 20 times slower where the cores are busy.
        faiss.omp_set_num_threads(1 if len(queries) < THREADS_FROM else os.cpu_count() or 1)
        faiss.cvar.distance_compute_blas_threshold = BLAS_FROM * self.dim  # in queries times dimensions
        rows: Found
        if graph is None:
            rows = faiss.knn(queries, self._vectors, k, metric=faiss.METRIC_INNER_PRODUCT)[1]
        else:
            rows = graph.search(queries, k, params=_parameters(max(effort or SEARCH_EFFORT, k)))[1]
        return rows

    def _ranked(self, query: Vector, rows: Found) -> Rows:
        if rows[-1] < 0:  # FAISS fills up at the end
            rows = rows[rows >= 0]
        products = self._vectors.take(rows, axis=0)  # quicker than by an index, with the same copy
        products *= query
        scores = np.add.reduce(products, axis=1)
        order = np.lexsort((rows, -scores))
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


@lru_cache(maxsize=64)
def _parameters(effort: int) -> Any:
    """FAISS's parameters of a search, which only reads them; making them costs a hundredth of a search."""
    import faiss

    return faiss.SearchParametersHNSW(efSearch=effort)  # type: ignore[attr-defined]


def write_graph(vectors: Matrix, path: Path) -> None:
    """Build the HNSW graph of `vectors` (n, dim) on all cores; write it to `path` with half-precision copies.

    A search walks over these: as quick, with the same recall, in half the memory. They are in the file so
    that opening it maps them, where making them took seconds for a million.
    """
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index: Any = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD_EFFORT
    index.add(np.ascontiguousarray(vectors))
    full = index.storage
    full.this.own(True)
    index.own_fields, index.storage = False, None
    del full  # before the copies are made, so that both are never in memory together
    halves = faiss.IndexScalarQuantizer(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    for start in range(0, len(vectors), COPIED):
        halves.add(np.ascontiguousarray(vectors[start : start + COPIED]))
    index.storage = halves
    # FAISS's own writer of files keeps the error of its last bytes to itself, and leaves a torn file.
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write, WRITTEN))  # type: ignore[attr-defined]


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
