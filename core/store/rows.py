"""Values as SQLite keeps them: it has no place for lone surrogates in TEXT, nor for NaN in REAL."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from core.store import codec


class Encoded(bytes):
    """A text that UTF-8 cannot hold; other bytes are hashes."""


def bind(value: Any) -> Any:
    """Text that UTF-8 cannot hold as a BLOB, everything else as it is."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return Encoded(codec.to_bytes(value))
    return value


def text(value: Any) -> Any:
    """Invert `bind`."""
    return codec.to_text(value) if isinstance(value, bytes) else value


def real(value: float) -> float | str:
    """Convert a number for a REAL column, to be read with float(): SQLite would turn NaN into NULL."""
    return "nan" if value != value else float(value)


def parsed(value: str | bytes) -> Any:
    """Parse a JSON column's value."""
    try:
        return from_json(value)  # twice as fast
    except (ValueError, TypeError):  # it has lone surrogates, or is nested too deep for it
        return json.loads(codec.to_text(value))
