"""Replies of pipelines on disk, so that a run can be replayed without asking them. A broken file costs time,
never a reply.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.backends.cache_file import DiskCache
from core.backends.external.doors import PipelineRequest
from core.domain.pipelines import Pipeline

LIMIT = 256_000_000  # bytes of the file in use


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
    """Replies by key."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._kept = DiskCache(path, "replies of pipelines", limit)

    def get(self, key: str) -> StoredReply | None:
        """Return the newest reply stored under `key`, or None."""
        stored = self._kept.get([key]).get(key)
        return None if stored is None else StoredReply(**json.loads(stored))

    def put(self, key: str, text: str, ms: float, inside_ms: float | None) -> None:
        """Store a reply; the newest one of a key stays."""
        reply = StoredReply(text, datetime.now(UTC).isoformat(timespec="milliseconds"), ms, inside_ms)
        self._kept.put({key: json.dumps(asdict(reply)).encode()})
