"""Replies of pipelines on disk, so that a run can be replayed without asking them. A broken file costs time,
never a reply.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.backends.cache_file import opened, used
from core.backends.external.doors import PipelineRequest
from core.domain.pipelines import Pipeline

log = logging.getLogger(__name__)
LIMIT = 256_000_000  # bytes of the file in use: the oldest replies go first
_SCHEMA = """
create table if not exists replies (
    key text primary key, pipeline text not null, made text not null, ms real not null, inside_ms real,
    reply text not null
) without rowid;
create index if not exists replies_by_time on replies (made);
"""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply as it came: its JSON text, when it was made (ISO 8601, UTC), and what the call took then."""

    text: str
    made: str
    ms: float
    inside_ms: float | None


def key_of(pipeline: Pipeline, asked: PipelineRequest) -> str:
    """Equal for an equal question to the same target; which run asked does not count."""
    document = {**asked.document(), "trace_id": ""}
    facts = {"form": 1, "name": pipeline.name, "target": pipeline.target, "asked": document}
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


class Replies:
    """One SQLite file (WAL); a connection per use, so any thread of any process may read and write."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path, self._limit = path, limit

    def get(self, key: str) -> StoredReply | None:
        """Return the newest reply stored under `key`, or None."""
        if not self.path.exists():
            return None
        try:
            with opened(self.path) as db:
                row = db.execute(
                    "select reply, made, ms, inside_ms from replies where key = ?", [key]
                ).fetchone()
        except (sqlite3.Error, OSError) as error:
            log.warning("replies of pipelines in %s cannot be read (%s)", self.path, error)
            return None
        return StoredReply(*row) if row else None

    def put(self, key: str, pipeline: str, text: str, ms: float, inside_ms: float | None) -> None:
        """Store a reply; the newest one of a key stays."""
        row = (key, pipeline, datetime.now(UTC).isoformat(timespec="milliseconds"), ms, inside_ms, text)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with opened(self.path) as db:
                db.executescript(_SCHEMA)
                db.execute("insert or replace into replies values (?, ?, ?, ?, ?, ?)", row)
                self._make_room(db)
        except (sqlite3.Error, OSError) as error:
            log.warning("a reply cannot be stored in %s (%s); runs go on without it", self.path, error)

    def _make_room(self, db: sqlite3.Connection) -> None:
        over = used(db) - self._limit
        if over <= 0:
            return
        gone: list[tuple[str]] = []
        for key, length in db.execute("select key, length(reply) from replies order by made"):
            gone.append((key,))
            over -= length
            if over <= -self._limit // 10:
                break
        db.executemany("delete from replies where key = ?", gone)
