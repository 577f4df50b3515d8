"""What every step of a run was really given, noted by the identity of hits, vectors and objects.

Each step's result is replaced by one with hits of its own, so that a hit tells which step made it and at
which place, wherever the route carries it. Nothing of what steps record about themselves is used.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from core.domain.types import Hit, Passage, TracedTuple
from core.steps import Steps
from core.steps.step import TracedVector
from core.steps.trace import Trace

_UNDER_WAY: ContextVar[list[int] | None] = ContextVar("the step whose span is next", default=None)


@dataclass(frozen=True)
class Given:
    """An argument: `size` items of what `span` made, from `start` on; None: what no step made.

    `lists`: it is a ranking by the step's signature. `empty`: nothing is in it that says where it is from.
    """

    arg: str
    span: int | None
    size: int
    start: int = 0
    lists: bool = False
    empty: bool = False


@dataclass
class Call:
    """One step done: what it was given, and the passages it gave where it makes a ranking."""

    name: str
    given: list[Given]
    values: Mapping[str, Any]
    hits: list[str] | None = None


@dataclass
class Watch:
    """All that was given and made, by the route that did it and the number of the step's span."""

    calls: dict[tuple[str, int], Call] = field(default_factory=dict)
    twice: list[tuple[str, int, int]] = field(
        default_factory=list
    )  # two steps that gave the very same object
    _made: dict[int, tuple[object, str, int, int]] = field(
        default_factory=dict
    )  # by identity; place in a list
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def origin(self, owner: str, value: Any, arg: str = "hits", *, lists: bool = True) -> Given:
        """Where a ranking is from."""
        found = [self._of(owner, hit) for hit in value]
        if not found:
            known = self._of(owner, value)
            return Given(arg, known[0] if known else None, 0, 0, lists, known is None)
        first = found[0]
        if first is not None and found == [(first[0], first[1] + n) for n in range(len(found))]:
            return Given(arg, first[0], len(found), first[1], lists)
        return Given(arg, None, len(found), 0, lists)

    def _of(self, owner: str, value: object) -> tuple[int, int] | None:
        known = self._made.get(id(value))
        return (known[2], known[3]) if known and known[0] is value and known[1] == owner else None

    def _note(self, owner: str, value: object, span: int, place: int = 0) -> None:
        if (known := self._of(owner, value)) and known[0] != span:
            self.twice.append((owner, known[0], span))
        with self._lock:
            self._made[id(value)] = value, owner, span, place

    def given(self, owner: str, value: Any, arg: str, *, lists: bool) -> Iterator[Given]:
        """The parts of an argument that steps made, or might have."""
        if isinstance(value, tuple | list) and not any(isinstance(one, str) for one in value):
            if all(isinstance(one, Hit) for one in value) and (value or lists):
                yield self.origin(owner, value, arg, lists=lists)
            elif known := self._of(owner, value):
                yield Given(arg, known[0], len(value), lists=lists)
            else:
                for n, one in enumerate(value):
                    yield from self.given(owner, one, f"{arg}[{n}]", lists=lists)
        elif isinstance(value, np.ndarray):
            known = self._of(owner, value)
            yield Given(arg, known[0] if known else None, len(value))
        elif isinstance(value, Mapping):
            for key, one in value.items():
                yield from self.given(owner, one, f"{arg}.{key}", lists=False)
        elif is_dataclass(value) and not isinstance(value, type | Passage):
            if known := self._of(owner, value):
                yield Given(arg, known[0], 1)
            else:
                for one in fields(value):
                    yield from self.given(owner, getattr(value, one.name), f"{arg}.{one.name}", lists=False)

    def mark(self, owner: str, span: int, result: Any) -> Any:
        """The result with hits of its own."""
        if isinstance(result, tuple) and result and all(isinstance(one, Hit) for one in result):
            own = [Hit(hit.passage, hit.score) for hit in result]
            for place, hit in enumerate(own):
                self._note(owner, hit, span, place)
            return TracedTuple(own, result.origin) if isinstance(result, TracedTuple) else tuple(own)
        if isinstance(result, TracedVector | tuple) or (
            is_dataclass(result) and not isinstance(result, type)
        ):
            self._note(owner, result, span)
        return result


@contextmanager
def watched() -> Iterator[Watch]:
    """With every step watched."""
    watch, spans = Watch(), Trace.span

    @contextmanager
    def span(self: Trace, *args: Any, **kwargs: Any) -> Iterator[Any]:
        with spans(self, *args, **kwargs) as opened:
            mine = _UNDER_WAY.get()
            if mine is not None and not mine:
                mine.append(opened.id)
            yield opened

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trace, "span", span)
        for name, method in inspect.getmembers(Steps, inspect.isfunction):
            if hasattr(method, "__wrapped__"):
                patch.setattr(Steps, name, _watched(watch, name, method))
        yield watch


def _watched(watch: Watch, name: str, method: Any) -> Any:
    signature = inspect.signature(method.__wrapped__)
    rankings = {one.name for one in signature.parameters.values() if "Ranking" in str(one.annotation)}

    def call(self: Steps, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        owner, values = self.context.trace.owner, {k: v for k, v in bound.arguments.items() if k != "self"}
        given = [
            one
            for arg, value in values.items()
            for one in watch.given(owner, value, arg, lists=arg in rankings)
        ]
        mine: list[int] = []
        token = _UNDER_WAY.set(mine)
        made = Call(name, given, values)
        try:
            result = method(self, *args, **kwargs)
        finally:
            _UNDER_WAY.reset(token)
            if mine:
                watch.calls[owner, mine[0]] = made
        if signature.return_annotation == "Ranking":
            made.hits = [hit.passage.id for hit in result]
        return watch.mark(owner, mine[0], result)

    return call
