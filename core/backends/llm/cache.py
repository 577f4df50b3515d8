"""Completions on disk by content hash: no call is made twice. A broken cache costs time, never an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.backends.cache_file import DiskCache

LIMIT_MB = 1024
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


class CompletionCache(DiskCache):
    """Completions by key, at most `limit_mb` megabytes."""

    def __init__(self, path: Path, limit_mb: int = LIMIT_MB) -> None:
        super().__init__(path, "model answers", limit_mb * 1_000_000)

    def completion(self, key: str) -> Completion | None:
        """Return the completion stored under `key`, or None."""
        stored = self.get([key]).get(key)
        try:
            return None if stored is None else from_plain(json.loads(stored), "cache")
        except (ValueError, TypeError, KeyError) as error:
            self.warn("read", error)
            return None

    def keep(self, key: str, completion: Completion) -> None:
        """Store a completion; the first one stored under a key stays."""
        value = canonical(to_plain(completion)).encode("utf-8", "surrogatepass")
        self.put({key: value}, replace=False)
