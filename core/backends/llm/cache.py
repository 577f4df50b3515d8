"""Completions on disk by content hash: no call is made twice. A broken cache costs time, never an answer."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.backends.cache_file import opened, used

log = logging.getLogger(__name__)
LIMIT_MB = 1024
KEEP = 0.9  # of the limit, once it was passed: so that not every answer has to make room for itself
DAY_S = 86_400  # how exactly it is known when an answer was used: else each reading would be a writing
_SCHEMA = """
create table if not exists completions (
    key text primary key, prompt text not null, model text not null, created text not null,
    completion text not null
) without rowid;
create table if not exists uses (key text primary key, day integer not null) without rowid;
create index if not exists uses_by_day on uses (day);
"""


COST_ONLY = ("reuse_prefix",)  # fields of a request that do not decide the answer


def key_of(request: LLMRequest, *, endpoint: str, model: str) -> str:
    """Hash everything that determines a call's answer."""
    asked = {name: value for name, value in asdict(request).items() if name not in COST_ONLY}
    if not request.grammar:  # which requests stored before there were grammars do not have
        del asked["grammar"]
    facts = {"form": 1, "endpoint": endpoint, "model": model, "request": asked}
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON of one form only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_plain(completion: Completion) -> dict[str, Any]:
    """Convert a completion to JSON values, without its reasoning and source."""
    plain = asdict(completion)
    del plain["source"], plain["reasoning"], plain["unopened"]
    if not plain["reasoning_tokens"]:
        del plain["reasoning_tokens"]
    return plain


def from_plain(plain: Mapping[str, Any], source: Literal["cache", "recording"]) -> Completion:
    """Convert JSON values to a completion with this source. Raises KeyError, TypeError, ValueError for
    another form.
    """
    tokens = tuple(
        TokenLogprob(t["token"], float(t["logprob"]), tuple((str(o[0]), float(o[1])) for o in t["top"]))
        for t in plain["logprobs"]
    )
    return Completion(**{**plain, "logprobs": tokens, "source": source})


class CompletionCache:
    """One SQLite file (WAL); a connection per use, so any thread of any process may read and write.

    It holds at most `limit_mb` megabytes: those used longest ago go first.
    """

    def __init__(self, path: Path, limit_mb: int = LIMIT_MB) -> None:
        self.path, self._limit = path, limit_mb * 1_000_000
        self.problem: str | None = None  # why it does not work, once that was seen

    def get(self, key: str) -> Completion | None:
        """Return the completion stored under `key`, or None."""
        if not self.path.exists():
            return None
        try:
            with opened(self.path) as db:
                row = db.execute("select completion from completions where key = ?", [key]).fetchone()
                if row:
                    self._use(db, key)
            return from_plain(json.loads(row[0]), "cache") if row else None
        except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as error:
            self._warn("read", error)
            return None

    def put(self, key: str, request: LLMRequest, completion: Completion) -> None:
        """Store a completion; the first one stored under a key stays."""
        row = (key, request.prompt, completion.model, completion.created, canonical(to_plain(completion)))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with opened(self.path) as db:
                db.executescript(_SCHEMA)
                db.execute("insert or ignore into completions values (?, ?, ?, ?, ?)", row)
                self._use(db, key)
                self._make_room(db)
        except (sqlite3.Error, OSError) as error:
            self._warn("written", error)

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Forget what was used longest ago where there is too much. Freed pages are used again, so that the
        file grows no more.
        """
        while (over := used(db) - self._limit * KEEP) > self._limit * (1 - KEEP):
            db.execute("begin immediate")
            oldest = db.execute(
                "select c.key, length(c.completion) from completions c left join uses u on u.key = c.key"
                " order by coalesce(u.day, 0), c.created"  # an earlier version noted no use
            )
            gone = []
            for key, length in oldest:
                gone.append((key,))
                over -= length
                if over <= 0:
                    break
            for table in ("completions", "uses"):
                db.executemany(f"delete from {table} where key = ?", gone)
            db.execute("commit")
            if not gone:
                return

    def _use(self, db: sqlite3.Connection, key: str) -> None:
        """Note that an answer was used today; one that cannot be noted can be read all the same."""
        today = int(time.time()) // DAY_S
        try:
            db.executescript(_SCHEMA)
            known = db.execute("select day from uses where key = ?", [key]).fetchone()
            if known is None or known[0] != today:
                db.execute("insert or replace into uses values (?, ?)", [key, today])
        except sqlite3.Error as error:
            self._warn("written", error)

    def _warn(self, verb: str, error: Exception) -> None:
        """Say each kind of fault once; it would repeat with every call."""
        problem = f"the cache of model answers {self.path} cannot be {verb} ({error}); calls go on without it"
        if problem != self.problem:
            log.warning("%s. If it stays so, delete the file.", problem)
        self.problem = problem
