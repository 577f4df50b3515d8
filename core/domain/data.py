"""Data files next to the modules that read them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def table(module: str) -> dict[str, Any]:
    """Return the contents of the TOML file next to `module`, a module's `__file__`, with its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
