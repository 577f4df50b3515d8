"""For all tests: how many examples a property is tried on, where new stores come from, what is no garbage.

Every run tries the same ones, so that a change is judged by what it changes; `--hypothesis-profile=thorough`
draws many new ones.
Tests may share the machine with anything: no example has a deadline, pytest-timeout watches them all.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import core.store
from core.store.files import open_to_write

settings.register_profile("everyday", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=400)
settings.load_profile("everyday")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Modules and tests stay to the end: to look through them for garbage, again and again, takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def copied_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store's file that is not there begins as a copy of an empty one: to migrate takes longer than most
    tests. Those about the file itself ask for `stores_made_anew`.
    """

    @cache
    def empty() -> bytes:
        path = tmp_path_factory.mktemp("empty") / "empty.sqlite"
        open_to_write(path).close()
        return path.read_bytes()

    def open_copied(path: Path) -> Any:
        if not path.exists() and path.parent.is_dir():
            copied = Path(f"{path}.{os.getpid()}-{threading.get_ident()}")
            with suppress(OSError):  # told by what follows
                copied.write_bytes(empty())
                os.link(copied, path)  # whole at once, and never in place of another one
            copied.unlink(missing_ok=True)
        return open_to_write(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core.store, "open_to_write", open_copied)
        yield


@pytest.fixture
def stores_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores make and migrate their file themselves."""
    monkeypatch.setattr(core.store, "open_to_write", open_to_write)
