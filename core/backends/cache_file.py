"""A cache on disk, shared by threads and processes."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from core.backends.base import Embedder, Matrix, Vector
from core.domain.once import Recent

log = logging.getLogger(__name__)
BUSY_S = 5.0
USED_S = 3600.0  # how exactly the last use of a value is known: else each reading would be a writing
_SCHEMA = """
create table if not exists entries (
    number integer primary key, key text not null unique, used real not null, value blob not null
);
create index if not exists entries_by_use on entries (used, number);
"""


class DiskCache:
    """Values by key in one SQLite file (WAL), of at most `limit` bytes: those used longest ago go first.

    A connection per use, so any thread of any process may read and write. A file that cannot be read or
    written costs time, never a result: each problem is logged once.
    """

    def __init__(self, path: Path, what: str, limit: int) -> None:
        self.path, self._what, self._limit = path, what, limit
        self.problem: str | None = None  # why it does not work, once that was seen

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the known values of `keys`."""
        found: dict[str, bytes] = {}
        if not self.path.exists():
            return found
        now, stale = time.time(), []
        try:
            with _opened(self.path) as db:
                for key in keys:
                    row = db.execute("select value, used from entries where key = ?", [key]).fetchone()
                    if row is not None:
                        found[key] = row[0]
                        if abs(now - row[1]) > USED_S:
                            stale.append((now, key))
                if stale:
                    db.executemany("update entries set used = ? where key = ?", stale)
        except (sqlite3.Error, OSError) as error:
            self.warn("read" if not stale else "written", error)
        return found

    def put(self, values: Mapping[str, bytes], *, replace: bool = True) -> None:
        """Store values; without `replace` the first one stored under a key stays."""
        now = time.time()
        rows = [(key, now, value) for key, value in values.items()]
        verb = "replace" if replace else "ignore"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _opened(self.path) as db:
                db.executescript(_SCHEMA)
                db.execute("begin immediate")
                db.executemany(f"insert or {verb} into entries (key, used, value) values (?, ?, ?)", rows)
                self._make_room(db)
                db.execute("commit")
        except (sqlite3.Error, OSError) as error:
            self.warn("written", error)

    def warn(self, verb: str, error: Exception) -> None:
        """Log each kind of fault once: it would repeat with every call."""
        problem = f"the cache of {self._what} {self.path} cannot be {verb} ({error}); work goes on without it"
        if problem != self.problem:
            log.warning("%s. If it stays so, delete the file.", problem)
        self.problem = problem

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Delete what was used longest ago. Freed pages are used again, so the file grows no more."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (int(db.execute(f"pragma {name}").fetchone()[0]) for name in names)
        over = (pages - free) * size - self._limit
        if over <= 0:
            return
        gone: list[tuple[str]] = []
        for key, size in db.execute("select key, length(value) from entries order by used, number"):
            gone.append((key,))
            over -= size
            if over <= -self._limit // 10:  # so that not every value has to make room for itself
                break
        db.executemany("delete from entries where key = ?", gone)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        yield db
    finally:
        db.close()


MAX_VECTORS = 5_000  # vectors: 8 MB of 384 numbers each


class EmbeddingCache:
    """An embedder's vectors by text, the least lately used ones dropped. Safe to call from any thread.

    Texts are kept as hashes only, so that one that is deleted elsewhere cannot be read here.
    """

    def __init__(self, limit: int = MAX_VECTORS) -> None:
        self._vectors: Recent[bytes, Vector] = Recent(limit)
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
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, embedder.dim), np.float32)


def _key(embedder: Embedder, text: str) -> bytes:
    return hashlib.sha256(f"{embedder.name}\0{text}".encode("utf-8", "surrogatepass")).digest()
