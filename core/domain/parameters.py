"""Values of a route's parameters that know their names, so that a step records which parameter set what.

What is computed of such a value does not know it: `1 - alpha` is a number like any other. A switch (bool)
cannot carry a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class _Int(int):
    parameter: str


class _Float(float):
    parameter: str


class _Str(str):
    parameter: str


_KINDS: dict[type, type[Any]] = {int: _Int, float: _Float, str: _Str}


def named(value: T, parameter: str) -> T:
    """`value`, equal to what it was, as that of `parameter`."""
    kind = _KINDS.get(_plain_type(value))
    if kind is None:
        return value
    made = kind(value)
    made.parameter = parameter
    found: T = made  # of a subclass of T
    return found


def parameter_of(value: object) -> str | None:
    """Return the parameter that a value belongs to, or None."""
    return value.parameter if isinstance(value, _Int | _Float | _Str) else None


def carry(value: T, given: object) -> T:
    """`value` as that of the parameter that `given` is of, in whose place it stands."""
    parameter = parameter_of(given)
    return value if parameter is None else named(value, parameter)


def member(args: Mapping[str, Any], name: str) -> Any:
    """Return an argument or a part of it by its dotted name ("weights.1"), or None if it does not exist."""
    value: Any = args
    for part in name.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _plain_type(value: object) -> type:
    return next((kind for kind, own in _KINDS.items() if type(value) in (kind, own)), object)
