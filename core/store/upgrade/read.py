"""What a stored run holds may be anything: values as what they should be, or as nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def table(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The texts in a list."""
    return [one for one in rows(value) if isinstance(one, str)]


def number(value: Any) -> float | None:
    """`value` if it is a number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
