"""Tables and styles of the pages, kept as TOML and CSS in ui/data/."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"


@cache
def table(name: str) -> dict[str, Any]:
    """Return the contents of ui/data/`name`.toml."""
    return tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))


def style(name: str) -> str:
    """Return the rules of ui/data/`name`.css."""
    return (DATA / f"{name}.css").read_text(encoding="utf-8")
