"""A full disk: one clear message, nothing left over, and what was embedded is kept."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.backends import array_files
from core.backends.vector import write_graph
from core.corpus import index, uploads
from core.corpus.enrichments import store
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT, Settings
from tests.fakes import HashEmbedder

FULL = Path("/dev/full")  # takes nothing


class Wide(HashEmbedder):
    """8 kB a vector."""

    name, dim = "wide", 2048

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        return super().embed(texts)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Wide:
    wide = Wide()
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: wide)
    return wide


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a file system of a given size, or gives the mounted one that size."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = False

    def sized(size: str) -> Path:
        nonlocal mounted
        how = ["-o", f"remount,size={size}", str(place)] if mounted else ["-t", "tmpfs", "-o", f"size={size}"]
        command = ["mount", *how, *([] if mounted else ["tmpfs", str(place)])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted = True
        return place

    yield sized
    if mounted:  # lazily: an index of it may still be mapped
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def documents(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n in range(count):
        (folder / f"{n:03}.txt").write_text(f"document number{n}")
    return folder


def left(home: Path) -> set[str]:
    return {path.name for path in (home / "indexes" / "source").iterdir()} - {".lock"}


@pytest.mark.trust
def test_a_disk_that_is_full_before_the_first_text_is_told_at_once(
    tmp_path: Path, model: Wide, small: Callable[[str], Path]
) -> None:
    settings = Settings(home=small("2m"), embedder="wide")
    source = documents(tmp_path / "source", 300)  # 2.4 MB of vectors
    with pytest.raises(Unavailable, match=r"cannot be written below .*: No space left on device; free some"):
        index.build(None, source, settings=settings)
    assert model.embedded == []
    assert left(settings.home) == set()


@pytest.mark.trust
def test_what_was_embedded_before_the_disk_was_full_is_kept(
    tmp_path: Path, model: Wide, small: Callable[[str], Path]
) -> None:
    settings = Settings(home=small("2m"), embedder="wide")
    source = documents(tmp_path / "source", 160)  # 1.3 MB of vectors, and as much again until they stand
    with pytest.raises(Unavailable, match="No space left on device"):
        index.build(None, source, settings=settings)
    (kept,) = left(settings.home)
    assert kept.endswith(".part")
    before = len(model.embedded)
    assert 0 < before < 160
    small("20m")
    corpus = index.build(None, source, settings=settings)
    assert corpus.size == 160
    assert len(model.embedded) - 160 < 64  # one step was not written as a whole
    assert not any(name.endswith(".part") for name in left(settings.home))


@pytest.mark.trust
def test_room_that_cannot_be_reserved_ends_a_build_in_one_clear_line(
    tmp_path: Path, model: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path / "home", embedder="wide")
    source = documents(tmp_path / "source", 3)
    index.build(None, source, settings=settings)
    (source / "more.txt").write_text("more")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = left(settings.home)
    with pytest.raises(Unavailable, match="No space left on device") as caught:
        index.build("source", "source", settings=settings)
    assert "\n" not in str(caught.value)
    assert left(settings.home) == before
    corpus = index.open_corpus("source", settings=settings)
    assert corpus.size == 3
    with pytest.raises(Unavailable, match=r"the enrichment cannot be written below .*No space left"):
        store.build("children", corpus, settings=settings, embedder=model)
    assert [path.name for path in (settings.home / "enrichments" / "source").iterdir()] == ["children.lock"]


@pytest.mark.parametrize(
    "write",
    [
        lambda: array_files.save(FULL, np.zeros(5, np.int32)),
        lambda: write_graph(np.eye(8, dtype=np.float32), FULL),
        lambda: write_graph(np.ones((250, 4_096), np.float32), FULL),  # fails before its last bytes
    ],
)
def test_no_write_that_fails_goes_unnoticed(write: Callable[[], object]) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        write()


def test_uploads_that_cannot_be_kept_say_so(tmp_path: Path, small: Callable[[str], Path]) -> None:
    settings = Settings(home=small("1m"), embedder="hash")
    with pytest.raises(Unavailable, match=r"cannot save the files in .*: No space left on device"):
        uploads.add("mine", {"a.txt": b"words " * 400_000}, settings)
    assert uploads.corpora(settings) == []


@pytest.mark.parametrize("sizes", [[], [0], [9], [9, 1], [0, 99, 1], [1] * 12])
@pytest.mark.parametrize("expected", [0, 200])
def test_rows_that_were_added_are_read_as_any_array(tmp_path: Path, sizes: list[int], expected: int) -> None:
    rows = [np.arange(3 * size, dtype=np.float16).reshape(size, 3) for size in sizes]
    with array_files.RowWriter(tmp_path / "rows.npy", np.float16, (3,), expected) as file:
        for some in rows:
            file.add(some)
    together = np.concatenate([np.empty((0, 3), np.float16), *rows])
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy", allow_pickle=False), together)
    np.save(tmp_path / "other.npy", together)
    assert (tmp_path / "rows.npy").read_bytes() == (tmp_path / "other.npy").read_bytes()


@pytest.mark.trust
def test_no_file_is_mapped_for_writing() -> None:
    """Where its disk is full the process would end without a word."""
    for path in (PROJECT / "core").rglob("*.py"):
        text = path.read_text()
        assert "open_memmap" not in text, path
        assert all(', "r", ' in call for call in re.findall(r"memmap\(.*", text)), path
        modes = re.findall(r"mmap_mode=([^,)]*)", text)
        assert all(re.findall('"[^"]*"', mode) == ['"r"'] for mode in modes), path


@pytest.mark.parametrize("width", [2, array_files.WIDENED // 2])
def test_every_finite_half_becomes_the_number_it_is(width: int) -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = np.resize(halves[np.isfinite(halves)], (63488 // width + 2, width))
    room = np.full(finite.shape, np.nan, np.float32)
    assert array_files.single(finite, room) is room
    assert room.tobytes() == finite.astype(np.float32).tobytes()  # also of which sign zero is
    assert array_files.single(finite[:, ::2]).tobytes() == finite[:, ::2].astype(np.float32).tobytes()
    assert array_files.single(finite[:0]).shape == (0, width)
