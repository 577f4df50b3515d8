"""The vectors of an index: taken over where a text was embedded before, or comes with its vector; else made,
in steps that are kept.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files
from core.backends.base import Embedder, Matrix
from core.corpus import shipped_vectors
from core.domain.errors import ModelFailed

VECTORS, KEYS = "vectors.npy", "keys.npy"
KEY_BYTES = 16
STEP = 64  # passages embedded between two looks at Stop and two writes to the checkpoint
BLOCK = 4_096  # vectors written at once

Keys = NDArray[np.uint8]  # shape (n, KEY_BYTES)
Tick = Callable[[int, int], None]


class Searched(Protocol):
    """Texts to embed, in the order of rows."""

    def texts(self) -> Iterator[str]:
        """All of them."""

    def texts_at(self, rows: Sequence[int]) -> list[str]:
        """Those of `rows`."""


def keys(store: Searched, identity: str) -> Keys:
    """A content hash of each passage's text and the embedder, in the order of rows."""
    salt = identity.encode() + b"\0"
    digests = (
        hashlib.blake2b(salt + text.encode(), digest_size=KEY_BYTES).digest() for text in store.texts()
    )
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, KEY_BYTES)


class Checkpoint:
    """Vectors embedded by a build that has not ended; a torn or damaged end is cut off when it is read."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder
        self._prefix = f"embedded-{hashlib.sha256(identity.encode()).hexdigest()[:12]}-"

    def read(self) -> Iterator[tuple[bytes, NDArray[np.float32]]]:
        """What was embedded so far: (key, vector)."""
        for path in self._folder.glob(f"{self._prefix}*.part"):
            kind = _record(int(path.stem.rsplit("-", 1)[1]))
            stored = np.fromfile(path, kind, count=path.stat().st_size // kind.itemsize)
            good = 0
            for record in stored:
                if record["crc"] != _crc(record["key"].tobytes(), record["vector"]):
                    break
                good += 1
                yield record["key"].tobytes(), record["vector"]
            with path.open("r+b") as file:
                file.truncate(good * kind.itemsize)

    def add(self, new_keys: Keys, vectors: Matrix) -> None:
        """Append vectors, shape (n, dim), under `new_keys`."""
        dim = vectors.shape[1]
        records = np.zeros(len(vectors), _record(dim))
        records["key"], records["vector"] = new_keys, vectors
        records["crc"] = [_crc(key.tobytes(), vector) for key, vector in zip(new_keys, vectors, strict=True)]
        with (self._folder / f"{self._prefix}{dim}.part").open("ab") as file:
            file.write(records.tobytes())

    def clear(self) -> None:
        """Forget everything: the index that has it stands."""
        for path in self._folder.glob("embedded-*.part"):
            path.unlink()


@dataclass(frozen=True, slots=True)
class Vectors:
    """Gives every passage its vector.

    `identity` tells the embedder's weights; `load` is called only when a text has to be embedded; `former`
    are indexes whose vectors are sound.
    """

    name: str
    identity: str
    load: Callable[[], Embedder]
    former: Sequence[Path]
    checkpoint: Checkpoint

    def write(self, store: Searched, folder: Path, tick: Tick) -> tuple[int, int]:
        """Write the vectors of all passages and their keys; returns their dimension and how many were known.

        Equal texts are embedded once. The room on the disk is taken before the first text is embedded: raises
        OSError where there is none, and ModelFailed, Cancelled.
        """
        wanted = keys(store, self.identity)
        known = shipped_vectors.read(self.identity) | dict(self.checkpoint.read())
        for index in self.former:
            known |= _vectors_of(index)
        missing = [row for row, key in enumerate(wanted) if key.tobytes() not in known]
        waiting = list({wanted[row].tobytes(): row for row in missing}.values())
        dim = self.load().dim if waiting else len(known[wanted[0].tobytes()]) if len(wanted) else 0
        array_files.save(folder / KEYS, wanted)
        with array_files.Rows(folder / VECTORS, np.float32, (dim,), len(wanted)) as out:
            for start in range(0, len(waiting), STEP):
                tick(start, len(waiting))
                some = waiting[start : start + STEP]
                vectors = _checked(self.load(), store.texts_at(some))
                self.checkpoint.add(wanted[some], vectors)
                known.update(zip((wanted[row].tobytes() for row in some), vectors, strict=True))
            tick(len(waiting), len(waiting))
            for start in range(0, len(wanted), BLOCK):
                out.add(np.stack([known[key.tobytes()] for key in wanted[start : start + BLOCK]]))
        return dim, len(wanted) - len(missing)


def _vectors_of(index: Path) -> dict[bytes, NDArray[np.float32]]:
    """The vectors of an index by content key; they stay in their mapped file."""
    stored = np.load(index / KEYS, allow_pickle=False)
    vectors = np.load(index / VECTORS, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    return {key.tobytes(): vector for key, vector in zip(stored, vectors, strict=True)}


def _checked(embedder: Embedder, texts: list[str]) -> Matrix:
    vectors = np.asarray(embedder.embed(texts), np.float32)
    if vectors.shape != (len(texts), embedder.dim) or not np.isfinite(vectors).all():
        raise ModelFailed(f"embedder {embedder.name} gave no usable vectors (shape {vectors.shape})")
    return vectors


def _record(dim: int) -> np.dtype[Any]:
    return np.dtype([("key", np.uint8, (KEY_BYTES,)), ("vector", np.float32, (dim,)), ("crc", np.uint32)])


def _crc(key: bytes, vector: NDArray[np.float32]) -> int:
    return zlib.crc32(vector.tobytes(), zlib.crc32(key))
