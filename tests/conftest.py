"""For all tests: how many examples a property is tried on, where new stores come from, what is no garbage.

Every run tries the same ones, so that a change is judged by what it changes; `--hypothesis-profile=thorough`
draws many new ones.
Tests may share the machine with anything: no example has a deadline, pytest-timeout watches them all.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import core.store
from core.corpus import reading
from core.domain import system
from core.store.files import open_to_write

settings.register_profile("everyday", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=400)
settings.load_profile("everyday")
os.environ.setdefault("ROUTESCOPE_FIRST_START", "off")  # servers that tests start make nothing beside
BEGIN, LEAVE = reading.Reader._start, reading.Reader.__exit__


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Modules and tests stay to the end: to look through them for garbage, again and again, takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of other processes that fails is tried once more, and the summary counts it: beside the rest of
    the suite a process may come late.
    """
    for item in items:
        if item.get_closest_marker("process") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))


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

    def open_copied(path: Any) -> Any:
        if isinstance(path, Path) and not path.exists() and path.parent.is_dir():
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


@pytest.fixture
def readers_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read by a process begun for them, and ended after them."""
    monkeypatch.setattr(reading.Reader, "_start", BEGIN)
    monkeypatch.setattr(reading.Reader, "__exit__", LEAVE)


@pytest.fixture(scope="session", autouse=True)
def kept_readers() -> Iterator[None]:
    """A process that has read documents reads those of the next test: to begin one takes longer than most
    builds. Those about the process ask for `readers_begun_anew`.
    """
    idle: dict[Any, list[Any]] = {}

    def key(reader: reading.Reader) -> Any:
        return reader._limits, sys.executable, *(os.environ.get(name) for name in system.NEEDED)

    def start(reader: reading.Reader) -> Any:
        if reader._pipes is None and idle.get(key(reader)):
            reader._pipes, reader._errors = idle[key(reader)].pop()
        return BEGIN(reader)

    def leave(reader: reading.Reader, *_: object) -> None:
        if reader._pipes is not None and reader._pipes.process.poll() is None:
            idle.setdefault(key(reader), []).append((reader._pipes, reader._errors))
            reader._pipes = None
        reader.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.Reader, "_start", start)
        patch.setattr(reading.Reader, "__exit__", leave)
        yield
    last = reading.Reader()
    for last._pipes, last._errors in (kept for some in idle.values() for kept in some):
        last.close()


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.postgres)])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where a store is: a file, and again a fresh database of a real server."""
    if request.param == "file":
        return tmp_path / "sessions.sqlite"
    from core.store.postgres import Dsn
    from tests.postgres_server import fresh

    return Dsn(fresh())


@pytest.fixture
def store(store_place: Any) -> Iterator[core.store.Store]:
    """A store in a file, and again in a database of a server."""
    with closing(core.store.Store(store_place)) as made:
        yield made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line: (exit code, stdout, stderr)."""
    from core.cli import main

    return lambda *args: (main([*map(str, args)]), *capsys.readouterr())


@pytest.fixture(autouse=True)
def connections_let_go() -> Iterator[None]:
    """A server takes a hundred connections, and each test has a database of its own."""
    yield
    if (served := sys.modules.get("core.corpus.served")) is not None:
        for server in list(served._servers.values()):
            server.close()


@pytest.fixture(autouse=True)
def trials_forgotten() -> Iterator[None]:
    """What a process learned of an endpoint by a trial is not known to the next test."""
    yield
    if (endpoints := sys.modules.get("core.engine.endpoints")) is not None:
        endpoints._tried.clear()
        endpoints._trials.clear()


@pytest.fixture(autouse=True)
def pipelines_forgotten() -> Iterator[None]:
    """Routes that a command line named are those of its process, and many tests share one."""
    yield
    if (registry := sys.modules.get("core.routes.registry")) is not None and registry._given:
        registry.forget_given()
