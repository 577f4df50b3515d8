"""The program's location, whether it is installed, and the command that starts it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of `core`, `ui`, `pages` and `data`: of a checkout, or inside the installed package."""

_PART = re.compile("<<([a-z_]+)>>")
INSTALLED = (PROJECT / "__init__.py").is_file()  # the package `routescope`, which no checkout is
COMMAND = "routescope" if INSTALLED else "python -m core"
REPAIR = "install routescope again" if INSTALLED else "run make full (or pip install -r requirements.txt)"


def version() -> str:
    """Return the program's version."""
    if INSTALLED:
        from importlib import metadata

        return metadata.version("routescope")

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


@cache
def build() -> str:
    """Return the version with a digest of the files of `core`, equal for programs that behave equally."""
    digest = hashlib.sha256()
    files = [file for file in (PROJECT / "core").rglob("*") if file.suffix in (".py", ".toml")]
    for file in sorted(files, key=lambda one: one.as_posix()):
        digest.update(file.relative_to(PROJECT).as_posix().encode() + b"\0")
        digest.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return f"{version()} ({digest.hexdigest()[:10]})"


def table(module: str, **parts: str) -> dict[str, Any]:
    """Return the contents of the TOML file next to `module`, a module's `__file__`, with its name.

    <<name>> in its texts stands for a text of its table [parts], which may use those above it, or of `parts`.
    """
    rows = tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
    for name, text in rows.pop("parts", {}).items():
        parts[name] = _filled(text, parts)
    return {name: _filled(row, parts) for name, row in rows.items()} if parts else rows


def _filled(value: Any, parts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _PART.sub(lambda found: parts[found[1]], value)
    if isinstance(value, dict):
        return {name: _filled(item, parts) for name, item in value.items()}
    return [_filled(item, parts) for item in value] if isinstance(value, list) else value
