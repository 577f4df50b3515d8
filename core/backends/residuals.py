"""Vectors as the nearest centroid's number and two bits for each component of what is left.

Source: Santhanam et al. 2022, "ColBERTv2", arXiv:2112.01488, section 3.3. Bytes are decompressed by looking
them up, as in Santhanam et al. 2022, "PLAID", arXiv:2205.09707, section 4.5.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Matrix

BITS, IN_A_BYTE = 2, 4  # of a component; components in a byte, the first in its lowest bits
LEVELS = 1 << BITS
PER_ROOT = 8  # centroids are about this many times the root of how many vectors there are
MAX_CENTROIDS = 1 << 16  # centroids, whose numbers have 16 bits
TRAINED = 32  # vectors that a centroid is found from
MOST_TRAINED = 1 << 18  # vectors in memory while centroids are found: 400 MB of 384 dimensions
ROUNDS, SEED = 4, 123  # of k-means, as in the authors' program
ENCODED = 8_192  # vectors encoded at a time, 13 MB of 384 dimensions
Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint16]


def centroids_for(count: int) -> int:
    """Return the number of centroids for `count` vectors: a power of two, but at most one per vector."""
    if not count:
        return 0
    return min(count, MAX_CENTROIDS, 1 << int(math.log2(PER_ROOT * math.sqrt(count))))


def about_bytes(count: int, dim: int) -> int:
    """Estimate the bytes of `count` vectors with their centroids."""
    return count * (2 + -(-dim // IN_A_BYTE)) + centroids_for(count) * 4 * dim


def sample(count: int) -> NDArray[np.int64]:
    """Return the rows of the training sample of `count` vectors, ascending and deterministic."""
    wanted = min(count, MOST_TRAINED, TRAINED * centroids_for(count))
    return np.sort(np.random.default_rng(SEED).choice(count, wanted, replace=False, shuffle=False))


@dataclass(frozen=True, eq=False)
class Codec:
    """`centroids` of shape (n, dim); a component of a residual is in the bucket of how many `cutoffs` (3) are
    below it, and comes back as that one of the `weights` (4).
    """

    centroids: Matrix
    cutoffs: NDArray[np.float32]
    weights: NDArray[np.float32]
    _table: NDArray[np.complex128] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        buckets = np.arange(256)[:, None] >> BITS * np.arange(IN_A_BYTE) & LEVELS - 1
        # The four components of each byte as one number of 16 bytes: looked up at once.
        table = np.ascontiguousarray(self.weights[buckets], np.float32).view(np.complex128)[:, 0]
        object.__setattr__(self, "_table", table)

    @classmethod
    def train(cls, vectors: Matrix, count: int) -> Codec:
        """Train the codec of `count` vectors on `vectors` (n, dim), their `sample`.

        Centroids by k-means, as unit vectors; cutoffs and weights are quantiles of the residuals, so that
        each bucket receives a quarter of them and represents its middle.
        """
        import faiss

        dim = vectors.shape[1]
        if not len(vectors):
            empty = np.zeros(2 * LEVELS - 1, np.float32)
            return cls(np.empty((0, dim), np.float32), empty[1::2], empty[::2])
        faiss.omp_set_num_threads(os.cpu_count() or 1)
        least, most = {"min_points_per_centroid": 1}, {"max_points_per_centroid": TRAINED}
        found = faiss.Kmeans(dim, centroids_for(count), niter=ROUNDS, seed=SEED, **least, **most)
        found.train(np.ascontiguousarray(vectors, np.float32))
        rows = np.asarray(found.centroids, np.float32)
        centroids = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
        parts = [some - centroids[_nearest(centroids, some)] for some in _parts(vectors)]
        left = np.concatenate(parts).ravel()
        shares = np.arange(1, 2 * LEVELS) / (2 * LEVELS)  # 1/8 to 7/8: middles, and the cutoffs between
        quantiles = np.quantile(left, shares).astype(np.float32)
        return cls(centroids, quantiles[1::2], quantiles[::2])

    def encode(self, vectors: Matrix) -> tuple[Numbers, Bytes]:
        """Return the numbers of the nearest centroids, shape (n,), and the buckets, (n, dim / 4 rounded
        up).
        """
        count, dim = vectors.shape
        numbers = np.empty(count, np.uint16)
        width = -(-dim // IN_A_BYTE)
        packed = np.zeros((count, width), np.uint8)
        for at, some in enumerate(_parts(vectors)):
            rows = slice(at * ENCODED, at * ENCODED + len(some))
            near = _nearest(self.centroids, some)
            numbers[rows] = near
            left = some - self.centroids[near]
            buckets = np.zeros((len(some), width * IN_A_BYTE), np.uint8)
            for cutoff in self.cutoffs:
                buckets[:, :dim] += left > cutoff
            for place in range(IN_A_BYTE):
                packed[rows] |= buckets[:, place::IN_A_BYTE] << BITS * place
        return numbers, packed

    def decode(self, numbers: Numbers, packed: Bytes, out: Matrix) -> None:
        """Put the unit vectors that `encode` gave these for into `out`, shape (n, dim)."""
        count, dim = out.shape
        left = self._table.take(packed).view(np.float32).reshape(count, packed.shape[1] * IN_A_BYTE)[:, :dim]
        self.centroids.take(numbers, axis=0, out=out, mode="clip")
        out += left
        out /= np.maximum(np.sqrt(np.einsum("nd,nd->n", out, out))[:, None], np.float32(1e-12))


def _nearest(centroids: Matrix, vectors: Matrix) -> NDArray[np.int64]:
    """Return the centroid of highest inner product with each of `vectors`, shape (n,)."""
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    nearest: NDArray[np.int64] = faiss.knn(vectors, centroids, 1, metric=faiss.METRIC_INNER_PRODUCT)[1]
    return nearest[:, 0]


def _parts(vectors: Matrix) -> list[Matrix]:
    return [np.asarray(vectors[at : at + ENCODED], np.float32) for at in range(0, len(vectors), ENCODED)]
