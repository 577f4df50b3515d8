"""A step's arguments: their values, and which steps or route parameters they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from core.domain.parameters import parameter_of
from core.domain.traced_vector import TracedVector
from core.domain.types import Hit, Link, Passage, TracedTuple
from core.steps.trace import Trace, plain

_GONE = object()  # stands for a value that a link names


@dataclass(slots=True)
class Arguments:
    """A step's arguments as plain JSON, what steps made of them, and what the route's parameters set."""

    args: dict[str, Any] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    set_by: dict[str, str] = field(default_factory=dict)


def read(given: Mapping[str, Any], trace: Trace, lists: frozenset[str]) -> Arguments:
    """Read a step's arguments by name. `lists` names the parameters that take rankings; there () is an empty
    ranking that the route created itself.
    """
    reader = _Reader(trace)
    for name, value in given.items():
        found = reader.value(value, name, name, name in lists)
        if found is not _GONE:
            reader.read.args[name] = found
    reader.read.links = tuple(reader.links)
    return reader.read


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.links: list[Link] = []
        self.read = Arguments()

    def value(self, value: Any, arg: str, name: str, ranking: bool = False) -> Any:
        """`value` as plain JSON, or _GONE; links call it `arg` ("lists[1]"), settings `name` ("weights.1")"""
        if isinstance(value, TracedTuple):
            self.links.append(Link(arg, value.origin.span, len(value), value.origin.start))
            return plain(value) if value and all(isinstance(item, str) for item in value) else _GONE
        if isinstance(value, np.ndarray):
            origin = value.origin if isinstance(value, TracedVector) else None
            self.links.append(Link(arg, origin.span if origin else None, len(value)))
            return _GONE
        if isinstance(value, tuple | list):
            return self._items(value, arg, name, ranking)
        if isinstance(value, Mapping):
            return self._values(value, arg, name)
        if is_dataclass(value) and not isinstance(value, type | Passage):
            return self._object(value, arg, name)
        if (parameter := parameter_of(value)) is not None:
            self.read.set_by[name] = parameter
        return plain(value)

    def _items(self, value: tuple[Any, ...] | list[Any], arg: str, name: str, ranking: bool) -> Any:
        if all(isinstance(item, Hit) for item in value) and (value or ranking):
            self.links.append(Link(arg, None, len(value)))
            return _GONE
        found = [self.value(item, f"{arg}[{at}]", f"{name}.{at}", ranking) for at, item in enumerate(value)]
        kept = [item for item in found if item is not _GONE]
        return kept if kept or not found else _GONE

    def _values(self, value: Mapping[Any, Any], arg: str, name: str) -> Any:
        found = {str(key): self.value(item, f"{arg}.{key}", f"{name}.{key}") for key, item in value.items()}
        kept = {key: item for key, item in found.items() if item is not _GONE}
        return kept if kept or not found else _GONE

    def _object(self, value: Any, arg: str, name: str) -> Any:
        made = self.trace.made(value)
        if made is not None:
            self.links.append(Link(arg, made, 1))
            return _GONE
        before = len(self.links)
        found = {
            one.name: self.value(getattr(value, one.name), f"{arg}.{one.name}", f"{name}.{one.name}")
            for one in fields(value)
        }
        return found if len(self.links) == before else _GONE
