"""Work that routes of one run share: each distinct step is done once."""

from __future__ import annotations

import hashlib
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from core.backends.admission import Asker
from core.domain.types import Hit, Passage, Ranking, Reuse, Span, Tokens, TracedTuple

PLAIN = frozenset((str, int, float, bool, type(None)))  # told by their own representation


@dataclass(slots=True)
class CallCharge:
    """One model call and its tokens. `inside`: the steps within a piece of work that it was made in, from the
    outermost: a route that has had one of them has paid for the call.
    """

    tokens: int = 0
    inside: tuple[str, ...] = ()


@dataclass(slots=True)
class Work:
    """One distinct step of a run, done once by the route that reaches it first."""

    key: str
    asker: Asker
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    span: Span | None = None
    owner: str = ""
    calls: int = 0
    tokens: Tokens | None = None
    cached: Reuse | None = None
    cut_short: bool = False  # by its route's own budget, time or Stop: nobody else's result
    # all model calls the step needs by itself, whichever route made them
    charges: list[CallCharge] = field(default_factory=list)
    inner: set[str] = field(default_factory=set)  # keys of the steps inside it

    def include(self, part: Work) -> None:
        """Count a step that this one took; a step taken twice is paid once."""
        if part.key in self.inner:
            return
        self.inner |= {part.key, *part.inner}
        self.charges += [CallCharge(one.tokens, (part.key, *one.inside)) for one in part.charges]


_UNDER_WAY: ContextVar[Work | None] = ContextVar("under way", default=None)  # the innermost of this thread


def under_way() -> Work | None:
    """Return the innermost step this thread is doing."""
    return _UNDER_WAY.get()


@contextmanager
def doing(work: Work) -> Iterator[None]:
    """Make `work` the innermost step of this thread inside the block."""
    token = _UNDER_WAY.set(work)
    try:
        yield
    finally:
        _UNDER_WAY.reset(token)


class Memo:
    """The steps of one run by content; a route that asks for a step under way waits for it."""

    def __init__(self) -> None:
        self._work: dict[str, Work] = {}
        self._lock = threading.Lock()

    def claim(self, key: str, asker: Asker) -> tuple[Work, bool]:
        """Return the step's work, and True if the caller has to do it."""
        with self._lock:
            if key in self._work:
                return self._work[key], False
            self._work[key] = Work(key, asker)
            return self._work[key], True

    def drop(self, work: Work) -> None:
        """Forget a step that was cut short, so that another route may do it."""
        with self._lock:
            if self._work.get(work.key) is work:
                del self._work[work.key]


def digest(value: Any) -> str:
    """Hash a step's name and arguments (text, numbers, vectors, rankings, tuples and dicts of them) by
    content. Their origin is ignored.
    """
    parts: list[bytes] = []
    _feed(value, parts.append)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _feed(item: Any, add: Callable[[bytes], None]) -> None:
    """Give the bytes of `item`. What there is most of comes first."""
    if type(item) in PLAIN:
        add(repr(item).encode("utf-8", "surrogatepass") + b"\0")
    elif isinstance(item, tuple) and set(map(type, item)) == {Hit}:
        if isinstance(item, TracedTuple):  # many routes and later steps receive the same result
            if not item.content:
                item.content.append(_hash_of(item))
            add(item.content[0])
        else:
            add(_hash_of(item))
    elif isinstance(item, tuple | list):
        add(b"(")
        for part in item:
            _feed(part, add)
        add(b")")
    elif isinstance(item, Hit):
        told = f"({item.passage.id!r}\0{_content(item.passage)}\0{item.score!r}\0)"
        add(told.encode("utf-8", "surrogatepass"))
    elif isinstance(item, np.ndarray):
        add(f"{item.dtype}{item.shape}".encode())
        add(item.tobytes())
    elif is_dataclass(item) and not isinstance(item, type):
        _feed([getattr(item, name) for name in _names(type(item))], add)
    elif isinstance(item, dict):
        _feed([[key, item[key]] for key in sorted(item)], add)
    elif isinstance(item, Sequence) and not isinstance(item, str):
        _feed(list(item), add)
    else:
        add(repr(item).encode("utf-8", "surrogatepass") + b"\0")


def _hash_of(hits: Ranking) -> bytes:
    """Hash a ranking's ids, texts and scores."""
    passages, scores = [hit.passage for hit in hits], [hit.score for hit in hits]
    exact = set(map(type, scores)) == {float}
    made = hashlib.sha256(repr([passage.id for passage in passages]).encode("utf-8", "surrogatepass"))
    made.update(array("q", map(_content, passages)).tobytes())
    made.update(array("d", scores).tobytes() if exact else repr(scores).encode())
    return made.digest()


def _content(passage: Passage) -> int:
    """Hash a passage's title and text. One id may have different texts, as a web page's snippets vary by
    query. Python caches the hash of a string.
    """
    return hash((passage.title, passage.text))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def add_tokens(parts: Iterable[Tokens | None]) -> Tokens | None:
    """Return the sum, or None if there is nothing to add."""
    known = [part for part in parts if part]
    if not known:
        return None
    return Tokens(*(sum(getattr(t, one.name) for t in known) for one in fields(Tokens)))
