"""Token vectors of passages that were read at question time, on disk: a passage is read once.

They are kept in half precision, as those made for an index are, and so are those just made: the second
question gets the scores of the first.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from core.backends.array_files import single
from core.backends.base import Matrix
from core.backends.cache_file import opened, used

log = logging.getLogger(__name__)
LIMIT = 512_000_000  # bytes of the file in use, some 5,000 passages of 130 tokens: those used longest ago go
_SCHEMA = """
create table if not exists vectors (
    key blob primary key, at real not null, dim int not null, data blob not null
);
create index if not exists vectors_by_time on vectors (at);
"""


class TokenCache:
    """Token vectors by text of the embedder `name`; safe to call from any thread of any process. A file that
    cannot be read or written costs time, never a result.
    """

    def __init__(self, path: Path, name: str, limit: int = LIMIT) -> None:
        self._path, self._name, self._limit = path, name, limit

    def get(self, texts: Sequence[str]) -> dict[int, Matrix]:
        """Return the known vectors of `texts` by position, each of shape (tokens, dim)."""
        if not self._path.exists():
            return {}
        found: dict[int, Matrix] = {}
        keys = [self._key(text) for text in texts]
        try:
            with opened(self._path) as db:
                for at, key in enumerate(keys):
                    row = db.execute("select dim, data from vectors where key = ?", [key]).fetchone()
                    if row is not None:
                        found[at] = single(np.frombuffer(row[1], np.float16)).reshape(-1, row[0])
                now = time.time()
                db.executemany("update vectors set at = ? where key = ?", [(now, keys[at]) for at in found])
        except (sqlite3.Error, OSError, ValueError) as error:
            log.warning("token vectors in %s cannot be read (%s)", self._path, error)
        return found

    def put(self, made: Mapping[str, Matrix]) -> None:
        """Keep vectors by their text."""
        now = time.time()
        rows = [
            (self._key(text), now, vectors.shape[1], vectors.astype(np.float16).tobytes())
            for text, vectors in made.items()
        ]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with opened(self._path) as db:
                db.executescript(_SCHEMA)
                db.execute("begin immediate")
                db.executemany("insert or replace into vectors values (?, ?, ?, ?)", rows)
                self._make_room(db)
                db.execute("commit")
        except (sqlite3.Error, OSError) as error:
            log.warning("token vectors cannot be kept in %s (%s)", self._path, error)

    def _make_room(self, db: sqlite3.Connection) -> None:
        over = used(db) - self._limit
        if over <= 0:
            return
        gone: list[tuple[bytes]] = []
        for key, size in db.execute("select key, length(data) from vectors order by at"):
            gone.append((key,))
            over -= size
            if over <= -self._limit // 10:
                break
        db.executemany("delete from vectors where key = ?", gone)

    def _key(self, text: str) -> bytes:
        whole = f"{self._name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=16).digest()


def rounded(vectors: Matrix) -> Matrix:
    """As they come back from the cache."""
    return single(vectors.astype(np.float16))
