"""Where this program lies, whether it was installed, and by which command it is called."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of `core`, `ui`, `pages` and `data`: of a checkout, or inside the installed package."""

INSTALLED = (PROJECT / "__init__.py").is_file()  # the package `routescope`, which no checkout is
COMMAND = "routescope" if INSTALLED else "python -m core"
REPAIR = "install routescope again" if INSTALLED else "run make setup (or pip install -r requirements.txt)"


def version() -> str:
    """The version of this program."""
    if INSTALLED:
        from importlib import metadata

        return metadata.version("routescope")
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])
