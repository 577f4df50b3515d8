"""Late chunking: a vector of each passage that is read within its document.

Source: Günther et al. 2024, "Late Chunking", arXiv:2409.04701.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from core.backends import array_files
from core.backends.embedder import MINILM
from core.backends.late import MiniLMTokens, token_embedder
from core.backends.onnx_text import in_bulk
from core.corpus.corpus import Corpus
from core.corpus.embeddings import VECTORS
from core.corpus.enrichments.keys import OWNERS, TEXTS, Group, KeyIndex, graph
from core.corpus.enrichments.recipe import Recipe, Tools, siblings
from core.corpus.types import Span
from core.domain.errors import Unavailable
from core.domain.settings import Settings


class Late(Recipe):
    """The mean of a passage's vector and that of its tokens within its document: its inner product with a
    question is the mean of both.
    """

    name = "late"
    title = "vectors of the passages within their documents"
    cost = "about two token embeddings per passage"
    apart = True

    def __init__(self, load: Callable[..., Any] = token_embedder) -> None:
        self._load = load

    def about_bytes(self, _characters: int, passages: int, dim: int, _settings: Settings, /) -> int:
        """Estimate a vector and its owner for each passage."""
        return passages * (4 * dim + 8)

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write a vector for each passage; one without a token keeps its own. Raises Unavailable if the
        corpus' embedder gives no token vectors.
        """
        if corpus.info.embedder not in MINILM:
            raise Unavailable(f"{corpus.info.embedder} gives no vectors of tokens; {MINILM[0]} does")
        model: MiniLMTokens = self._load(MINILM[0], settings=tools.settings)
        groups, done = siblings(corpus), 0
        made = np.empty((corpus.size, corpus.info.dim), np.float32)
        with tools.stages.stage("embed documents"), in_bulk(model, corpus.size) as many:
            for group, found in zip(groups, many.embed_parts(map(whole, groups)), strict=True):
                rows = [row for row, _ in group]
                own = corpus.vectors(rows)
                made[rows] = (own + np.where(found.any(axis=1, keepdims=True), found, own)) / 2
                done += len(rows)
                tools.stages.tick(done, corpus.size)
        array_files.save(folder / OWNERS, np.arange(corpus.size, dtype=np.int32))
        (folder / TEXTS).write_text('""\n' * corpus.size, encoding="utf-8")
        array_files.save(folder / VECTORS, made)
        return graph(folder, corpus.size, tools)

    def open(self, corpus: Corpus, folder: Path, _settings: Settings, /) -> KeyIndex:
        """Search by these vectors."""
        return KeyIndex(corpus, folder)


def whole(group: Group) -> tuple[str, list[Span]]:
    """Return the passages of a document as one text below its title, with the place of each in it; what two
    passages share is there once.
    """
    text, spans, document, end = group[0][1].title, list[Span](), "", 0
    for _, passage in group:
        shared = max(0, end - passage.start) if passage.doc_id == document else 0
        text += passage.text[shared:] if shared else f"\n\n{passage.text}"
        start = len(text) - max(len(passage.text), shared)
        spans.append((start, start + len(passage.text)))
        document, end = passage.doc_id, max(passage.end, end) if shared else passage.end
    return text, spans
