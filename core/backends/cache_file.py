"""A cache in one SQLite file, shared by threads and processes: how it is opened, and how full it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY_S = 5.0


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection for one use (WAL, autocommit), and close it afterwards. Raises sqlite3.Error."""
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        yield db
    finally:
        db.close()


def used(db: sqlite3.Connection) -> int:
    """Return the bytes of the pages in use, without free pages."""
    pages, free, size = (
        int(db.execute(f"pragma {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
