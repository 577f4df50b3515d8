"""Late interaction: each token of the question looks for the token of the passage that is most like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.backends.admission import ModelQueue
from core.backends.base import Matrix
from core.backends.embedder import MINILM, identity
from core.backends.minilm import FOLDER, onnx_file
from core.backends.named_models import place
from core.backends.onnx_text import OnnxModel, OnnxText
from core.backends.weights import clean, load
from core.domain.errors import ModelFailed
from core.domain.once import Once
from core.domain.settings import Settings

BATCH = 8  # texts of like length; larger batches are slower on a processor
CONTEXT = 64  # tokens on each side of a token within a document, at least


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """A text's tokens that count and their unit vectors, shape (tokens, dim)."""

    tokens: tuple[str, ...]
    vectors: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class MatchMatrix:
    """The cosines between each token of a question (rows) and of a passage (columns)."""

    query: tuple[str, ...]
    passage: tuple[str, ...]
    similarities: NDArray[np.float32]


class TokenEmbedder(Protocol):
    """Turns texts into a vector for each token; questions and passages may be treated differently."""

    @property
    def name(self) -> str:
        """As shown: says whether it was trained for late interaction."""

    @property
    def dim(self) -> int: ...

    def embed_query(self, text: str) -> TokenVectors:
        """One question."""

    def embed_passages(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Many passages, in batches."""


_models: Once[tuple[str, str], TokenEmbedder] = Once(2)


def token_embedder(name: str, *, settings: Settings) -> TokenEmbedder:
    """Load the token embedder called `name`, the embedded MiniLM or a ColBERT model, once for the process
    and again when its files were changed. Raises Unavailable.

    It is ready: the first use of a model is slow, and no question is to pay for that. The first use of MiniLM
    builds its ONNX file, once for every checkout on this machine.
    """

    def loaded() -> TokenEmbedder:
        if name in MINILM:
            embedder: TokenEmbedder = MiniLMTokens(onnx_file(settings.models_dir, "tokens"))
        else:
            embedder = ColbertTokens(name)
        embedder.embed_query("warm up")
        return embedder

    return _models.get((name, identity(name)), loaded)


def maxsim(query: Matrix, passage: Matrix) -> float:
    """Sum, over the question's tokens (q, dim), the highest cosine to any of the passage's (p, dim).

    A passage without tokens scores 0. Source: Khattab & Zaharia 2020, "ColBERT", arXiv:2004.12832, section
    3.3.
    """
    return float((query @ passage.T).max(axis=1).sum()) if len(passage) else 0.0


def maxsim_joined(query: Matrix, vectors: Matrix, lengths: Sequence[int]) -> NDArray[np.float32]:
    """Return `maxsim` of each passage, shape (n,), as one product.

    `vectors` are those of all passages one after another, shape (sum of lengths, dim).
    """
    scores = np.zeros(len(lengths), np.float32)
    filled = [at for at, length in enumerate(lengths) if length]
    if filled and len(query):
        starts = np.cumsum([0, *(lengths[at] for at in filled[:-1])])
        scores[filled] = np.maximum.reduceat(query @ vectors.T, starts, axis=1).sum(axis=0)
    return scores


def match_matrix(query: TokenVectors, passage: TokenVectors) -> MatchMatrix:
    """Return the cosines that `maxsim` sums, for display."""
    return MatchMatrix(query.tokens, passage.tokens, query.vectors @ passage.vectors.T)


class MiniLMTokens(OnnxModel):
    """The token vectors that all-MiniLM-L6-v2 averages into an embedding: never trained for MaxSim."""

    name = "MiniLM tokens (MaxSim)"

    def __init__(self, file: Path) -> None:
        self._model = OnnxText(FOLDER, file)
        self.dim = self._model.dim

    def embed_query(self, text: str) -> TokenVectors:
        """One question."""
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Many passages; [CLS] and [SEP] do not count."""
        encoded = self._model.encode(texts)
        found: dict[int, TokenVectors] = {}
        for rows, hidden in self._model.each([one.ids for one in encoded]):
            for row, of_text in zip(rows, hidden, strict=True):
                states = of_text[1 : len(encoded[row].ids) - 1]
                unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)
                found[row] = TokenVectors(tuple(encoded[row].tokens[1:-1]), unit)
        return [found[row] for row in range(len(encoded))]

    def embed_parts(self, documents: Iterable[tuple[str, Sequence[tuple[int, int]]]]) -> Iterator[Matrix]:
        """Yield for each document, a text and spans of its characters, the unit vectors of these parts, shape
        (parts, dim): the mean of their tokens, zeros without one. Longer texts are read in windows that
        share twice CONTEXT tokens, of which each window has the half that is farther from its edge.
        """
        texts, parts = tee(documents)
        windows = self._model.windows((text for text, _ in texts), 2 * CONTEXT)
        for (_, spans), found in zip(parts, windows, strict=True):
            states: dict[int, Matrix] = {}
            for rows, hidden in self._model.each([one.ids for one in found]):
                states |= zip(rows, hidden, strict=True)
            first = [1 + (CONTEXT if at else 0) for at in range(len(found))]
            last = [len(one.ids) - 1 - (CONTEXT if one is not found[-1] else 0) for one in found]
            cut = list(zip(range(len(found)), first, last, strict=True))
            vectors = np.concatenate([states[at][a:b] for at, a, b in cut])
            starts = [start for at, a, b in cut for start, _ in found[at].offsets[a:b]]
            means = np.zeros((len(spans), self.dim), np.float32)
            for mean, (a, b) in zip(means, np.searchsorted(starts, spans), strict=True):
                if b > a:
                    mean[:] = vectors[a:b].mean(axis=0)
            yield means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)


class ColbertTokens:
    """A multi-vector model (ColBERT) of sentence-transformers, by name or folder.

    The library reads checkpoints of Stanford's ColBERT, of PyLate and its own; prompts, lengths, the
    expansion of questions and the tokens that do not count are the checkpoint's.
    """

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or was not trained for this."""
        self.name = name
        self._model = load("MultiVectorEncoder", place(name, "late"))
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads
        self.dim = self.embed_query("").vectors.shape[1]

    def embed_query(self, text: str) -> TokenVectors:
        """One question."""
        with self._turns.slot():
            return self._read(self._model.encode_query([clean(text)], output_value=None)[0])

    def embed_passages(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Many passages, in batches."""
        if not texts:
            return []
        with self._turns.slot():
            found = self._model.encode_document(
                [clean(text) for text in texts], batch_size=BATCH, output_value=None, show_progress_bar=False
            )
        return [self._read(one) for one in found]

    def _read(self, found: dict[str, Any]) -> TokenVectors:
        mask = found["attention_mask"].bool()
        tokens = self._model.tokenizer.convert_ids_to_tokens(found["input_ids"][mask].tolist())
        vectors = found["token_embeddings"][mask].float().numpy()
        if not np.isfinite(vectors).all():
            raise ModelFailed(f"{self.name} gave token vectors that are not finite")
        return TokenVectors(tuple(tokens), vectors)
