"""The best few of many scores, exactly, without sorting them all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask, Rows

BLOCK = 256


def top_k(scores: NDArray[np.float32], k: int, allowed: Mask | None = None) -> Rows:
    """Return the `k` highest scores above 0 with their rows, best first, ties by row, of those `allowed`
    (None: all); `scores` has shape (n,).

    At least k scores reach the k-th highest of the blocks' maxima, so only those that do are examined (cf.
    block-max indexes, Ding & Suel 2011).
    """
    if k < 1 or not len(scores):
        return []
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(0))
    whole = len(scores) // BLOCK * BLOCK
    maxima = scores[:whole].reshape(-1, BLOCK).max(axis=1)
    floor = np.partition(maxima, len(maxima) - k)[len(maxima) - k] if len(maxima) >= k else 0.0
    rows = np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
    if len(rows) > k:
        found = scores[rows]
        edge = np.partition(found, len(rows) - k)[len(rows) - k]
        above = rows[found > edge]
        rows = np.concatenate([above, rows[found == edge][: k - len(above)]])
    order = rows[np.lexsort((rows, -scores[rows]))]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))
