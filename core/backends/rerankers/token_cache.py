"""Token vectors of passages that were read at question time, on disk: a passage is read once.

They are kept in half precision, as those made for an index are, and so are those just made: the second
question gets the scores of the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from core.backends.array_files import single
from core.backends.base import Matrix
from core.backends.cache_file import DiskCache

LIMIT = 512_000_000  # bytes of the file in use, some 5,000 passages of 130 tokens


class TokenCache:
    """Token vectors of the embedder `name`, by text."""

    def __init__(self, path: Path, name: str, limit: int = LIMIT) -> None:
        self._kept, self._name = DiskCache(path, "token vectors", limit), name

    def get(self, texts: Sequence[str]) -> dict[int, Matrix]:
        """Return the known vectors of `texts` by position, each of shape (tokens, dim)."""
        keys = [self._key(text) for text in texts]
        found = self._kept.get(keys)
        return {at: _vectors(found[key]) for at, key in enumerate(keys) if key in found}

    def put(self, made: Mapping[str, Matrix]) -> None:
        """Keep vectors by their text."""
        self._kept.put({self._key(text): _bytes(vectors) for text, vectors in made.items()})

    def _key(self, text: str) -> str:
        whole = f"{self._name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=16).hexdigest()


def _bytes(vectors: Matrix) -> bytes:
    """Return the dimension, 4 bytes, then the vectors as float16 by rows, both little-endian."""
    dim: int = vectors.shape[1]
    return dim.to_bytes(4, "little") + vectors.astype("<f2").tobytes()


def _vectors(value: bytes) -> Matrix:
    dim = int.from_bytes(value[:4], "little")
    return single(np.frombuffer(value, "<f2", offset=4)).reshape(-1, dim)


def rounded(vectors: Matrix) -> Matrix:
    """As they come back from the cache."""
    return single(vectors.astype(np.float16))
