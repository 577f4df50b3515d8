"""The names that frameworks and tools give to what a trace holds: vocabulary.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

VOCABULARY: dict[str, Any] = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))


def names(key: str) -> tuple[str, ...]:
    """Return a list of the vocabulary."""
    return tuple(VOCABULARY[key])
