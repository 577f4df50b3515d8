"""The GGUF models this project knows, by sha256 and size, each with several places that carry its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.domain.errors import BadInput
from core.domain.program import COMMAND, table

if TYPE_CHECKING:
    from core.domain.settings import Settings


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One piece of a model inside a wheel: package, version, the file in it and its size in bytes."""

    package: str
    version: str
    member: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Artefact:
    """A model file. `parts` in order concatenate to the file that `url` serves."""

    name: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    url: str
    parts: tuple[WheelPart, ...]
    use: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A catalogue line as commands and pages show it; `reason` says why a file that is there is not used."""

    artefact: Artefact
    path: Path
    reason: str | None

    @property
    def present(self) -> bool:
        """Return True if the file can be used."""
        return self.reason is None


def _series(row: dict[str, Any], total: int) -> Iterator[WheelPart]:
    """Yield the parts of a file of `total` bytes in numbered wheels of equal size."""
    package, size = row["package"], row["size"]
    module = package.replace("-", "_")
    for n in range(1, row["count"] + 1):
        member = f"{module}{n}/data/part{n:02}.bin"
        yield WheelPart(f"{package}{n}", row["version"], member, min(size, total - size * (n - 1)))


def _artefact(row: dict[str, Any]) -> Artefact:
    series = row.pop("series", None)
    parts = _series(series, row["bytes"]) if series else (WheelPart(**part) for part in row.pop("parts"))
    return Artefact(**row, parts=tuple(parts))


ARTEFACTS = tuple(map(_artefact, table(__file__)["model"]))
DEFAULT, FAST, TINY = (artefact.name for artefact in ARTEFACTS)


def find(name: str) -> Artefact:
    """Return the artefact called `name`. Raises BadInput, listing the known ones, if it does not exist."""
    known = {artefact.name: artefact for artefact in ARTEFACTS}
    if name not in known:
        raise BadInput(f"unknown model {name!r}; known: {', '.join(known)}, or the path of a .gguf file")
    return known[name]


def path_of(artefact: Artefact, settings: Settings) -> Path:
    """Return the path of the verified file of `artefact`, which may not exist yet."""
    return settings.models_dir / artefact.file


def missing(artefact: Artefact, settings: Settings) -> str | None:
    """None if the file is in place, else one line that says what is wrong and how to get it."""
    path = path_of(artefact, settings)
    get = f"run: {COMMAND} models pull {artefact.name} ({artefact.bytes / 1e9:.1f} GB)"
    try:
        size = path.stat().st_size
    except OSError:
        return f"model {artefact.name} is not downloaded; {get}"
    if size != artefact.bytes:
        return f"{path} has {size} bytes instead of {artefact.bytes}; delete it and {get}"
    return None


def entries(settings: Settings) -> list[CatalogueEntry]:
    """Every known model with its place and whether it is there."""
    return [CatalogueEntry(one, path_of(one, settings), missing(one, settings)) for one in ARTEFACTS]
