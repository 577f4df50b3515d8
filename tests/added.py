"""Routes of tests, one file each in fixtures/routes, found and run as those of `core.routes` are."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import core.routes
from core.routes.registry import routes

FOLDER = Path(__file__).parent / "fixtures" / "routes"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))


@contextmanager
def added() -> Iterator[tuple[str, ...]]:
    """With the routes of tests among all routes; gives their names."""
    before = core.routes.__path__
    core.routes.__path__ = [*before, str(FOLDER)]
    importlib.invalidate_caches()
    routes.cache_clear()
    try:
        yield NAMES
    finally:
        core.routes.__path__ = before
        for name in NAMES:
            sys.modules.pop(f"core.routes.{name}", None)
        routes.cache_clear()
