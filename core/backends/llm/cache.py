"""Completions on disk by content hash: no call is made twice. A broken cache costs time, never an answer."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from core.backends.base import Completion, LLMRequest, TokenLogprob

log = logging.getLogger(__name__)
BUSY_S = 5.0
_SCHEMA = """
create table if not exists completions (
    key text primary key, prompt text not null, model text not null, created text not null,
    completion text not null
) without rowid
"""


COST_ONLY = ("reuse_prefix", "logprobs_optional")  # fields of a request that do not decide the answer


def key_of(request: LLMRequest, *, endpoint: str, model: str) -> str:
    """The content hash of a call: everything that decides the answer, nothing that does not."""
    asked = {name: value for name, value in asdict(request).items() if name not in COST_ONLY}
    facts = {"form": 1, "endpoint": endpoint, "model": model, "request": asked}
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON of one form only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_plain(completion: Completion) -> dict[str, Any]:
    """A completion as JSON values; where it was read from is not part of it."""
    plain = asdict(completion)
    del plain["source"]
    return plain


def from_plain(plain: Mapping[str, Any], source: Literal["cache", "recording"]) -> Completion:
    """The completion again, but for its source. Raises KeyError, TypeError, ValueError for another form."""
    tokens = tuple(
        TokenLogprob(t["token"], float(t["logprob"]), tuple((str(o[0]), float(o[1])) for o in t["top"]))
        for t in plain["logprobs"]
    )
    return Completion(**{**plain, "logprobs": tokens, "source": source})


class CompletionCache:
    """One SQLite file (WAL); a connection per use, so any thread of any process may read and write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None  # why it does not work, once that was seen

    def get(self, key: str) -> Completion | None:
        """The completion stored under `key`, or None."""
        if not self.path.exists():
            return None
        try:
            with self._open() as db:
                row = db.execute("select completion from completions where key = ?", [key]).fetchone()
            return from_plain(json.loads(row[0]), "cache") if row else None
        except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as error:
            self._warn("read", error)
            return None

    def put(self, key: str, request: LLMRequest, completion: Completion) -> None:
        """Store a completion; the first one stored under a key stays."""
        row = (key, request.prompt, completion.model, completion.created, canonical(to_plain(completion)))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as db:
                db.execute("insert or ignore into completions values (?, ?, ?, ?, ?)", row)
        except (sqlite3.Error, OSError) as error:
            self._warn("written", error)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            db.execute(_SCHEMA)
            yield db
        finally:
            db.close()

    def _warn(self, verb: str, error: Exception) -> None:
        """Say each kind of fault once; it would repeat with every call."""
        problem = f"the cache of model answers {self.path} cannot be {verb} ({error}); calls go on without it"
        if problem != self.problem:
            log.warning("%s. If it stays so, delete the file.", problem)
        self.problem = problem
