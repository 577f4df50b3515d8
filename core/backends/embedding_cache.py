"""Vectors of texts that are searched again and again, kept so that each is embedded once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from core.backends.base import Embedder, Matrix, Vector

MAX_VECTORS = 5_000  # vectors: 8 MB of 384 numbers each


class EmbeddingCache:
    """An embedder's vectors by text, the least lately used ones dropped. Safe to call from any thread.

    Texts are kept as hashes only, so that one that is deleted elsewhere cannot be read here.
    """

    def __init__(self, limit: int = MAX_VECTORS) -> None:
        self._limit = limit
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, embedder: Embedder, texts: Sequence[str]) -> int:
        """Count the texts that are cached."""
        with self._lock:
            return sum(_key(embedder, text) in self._vectors for text in texts)

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        keys = [_key(embedder, text) for text in texts]
        with self._lock:
            known = {key: self._vectors[key] for key in keys if key in self._vectors}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            known |= dict(zip(new, embedder.embed(list(new.values())), strict=True))
        with self._lock:
            for key in keys:
                self._vectors[key] = known[key]
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._limit:
                self._vectors.popitem(last=False)
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, embedder.dim), np.float32)


def _key(embedder: Embedder, text: str) -> bytes:
    return hashlib.sha256(f"{embedder.name}\0{text}".encode("utf-8", "surrogatepass")).digest()
