"""Vectors that come with the program, of the built-in documents' texts, found by content as any other's.

`python -m scripts.vectors` makes them; they are half precision, which moves no cosine by a ten-thousandth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from core.corpus.types import DenseWeight
from core.domain.program import PROJECT

FOLDER = PROJECT / "data" / "vectors"
SHIPPED_KEYS, SHIPPED_VECTORS, SHIPPED_WEIGHTS = "keys.npy", "vectors.npy", "dense_weights.json"
_WEIGHTS = TypeAdapter(dict[str, DenseWeight])  # by the fingerprint of the index


def read(identity: str, folder: Path = FOLDER) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Content keys, shape (n, 16), and unit vectors made by the embedder `identity`, shape (n, dim); none of
    another embedder.
    """
    place = folder / identity
    if "/" in identity or not (place / SHIPPED_KEYS).is_file():
        return np.empty((0, 16), np.uint8), np.empty((0, 0), np.float32)
    stored = np.load(place / SHIPPED_KEYS, allow_pickle=False)
    vectors = np.load(place / SHIPPED_VECTORS, allow_pickle=False).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return stored, vectors


def dense_weight(identity: str, fingerprint: str, folder: Path = FOLDER) -> DenseWeight | None:
    """Return the weight measured for an index of documents that come with the program."""
    file = folder / identity / SHIPPED_WEIGHTS
    if "/" in identity or not file.is_file():
        return None
    found = _WEIGHTS.validate_json(file.read_bytes())
    return found.get(fingerprint)
