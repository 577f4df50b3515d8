"""Work that routes of one run share: each distinct step is done once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from core.admission import Asker
from core.types import Hit, Reuse, Span, Tokens


@dataclass(slots=True)
class Work:
    """One distinct step of a run: done once, by whichever route comes first, `asker`."""

    asker: Asker
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    span: Span | None = None
    owner: str = ""
    calls: int = 0
    tokens: Tokens | None = None
    cached: Reuse | None = None


class Memo:
    """The steps of one run by content; a route that asks for a step under way waits for it."""

    def __init__(self) -> None:
        self._work: dict[str, Work] = {}
        self._lock = threading.Lock()

    def claim(self, key: str, asker: Asker) -> tuple[Work, bool]:
        """The step's work and whether the caller is to do it."""
        with self._lock:
            if key in self._work:
                return self._work[key], False
            self._work[key] = Work(asker)
            return self._work[key], True

    def drop(self, key: str) -> None:
        """Forget a step that its route was stopped in, so that another route may do it."""
        with self._lock:
            self._work.pop(key, None)


def digest(value: Any) -> str:
    """A content hash of a step's name and arguments (text, numbers, vectors, rankings, tuples and dicts of
    them).
    """
    parts: list[bytes] = []
    _feed(value, parts.append)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _feed(item: Any, add: Callable[[bytes], None]) -> None:
    """Give the bytes of `item`. Hits come first: a ranking has a hundred of them."""
    if isinstance(item, Hit):
        add(f"({item.passage.id!r}\0{item.score!r}\0)".encode("utf-8", "surrogatepass"))
    elif isinstance(item, np.ndarray):
        add(item.tobytes())
    elif is_dataclass(item) and not isinstance(item, type):
        _feed([getattr(item, name) for name in _names(type(item))], add)
    elif isinstance(item, dict):
        _feed([[key, item[key]] for key in sorted(item)], add)
    elif isinstance(item, Sequence) and not isinstance(item, str):
        add(b"(")
        for part in item:
            _feed(part, add)
        add(b")")
    else:
        add(repr(item).encode("utf-8", "surrogatepass") + b"\0")


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def add_tokens(parts: Sequence[Tokens | None]) -> Tokens | None:
    """The sum, or None where there is nothing to add."""
    known = [part for part in parts if part]
    if not known:
        return None
    return Tokens(
        sum(t.prompt for t in known), sum(t.completion for t in known), sum(t.cached for t in known)
    )
