"""Passages to look through, a page at a time: in order, by words, by meaning, of one document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.backends.base import Vector
from core.corpus.corpus import Corpus
from core.domain.types import Passage


@dataclass(frozen=True, slots=True)
class Page:
    """Passages from place `start` on of `total`, each with its score where they are ranked."""

    passages: tuple[Passage, ...]
    scores: tuple[float, ...] | None
    start: int
    total: int


def browse(
    corpus: Corpus,
    *,
    words: str = "",
    vector: Vector | None = None,
    document: str | None = None,
    start: int = 0,
    limit: int = 50,
) -> Page:
    """Return a page of the passages of a corpus, or of a `document` in reading order.

    `words` ranks passages that share a term with it by BM25; `vector`, shape (dim,), ranks all by cosine.
    Without either they are ordered by id. Every page costs the same, except for rankings, which are computed
    up to it. Raises BadInput if the document does not exist.
    """
    start, end = max(0, start), max(0, start) + limit
    if document is not None:
        return _of_document(corpus, words, vector, document, start, end)
    if vector is not None:
        hits, total = corpus.search_dense(vector, end), corpus.size
    elif words.strip():
        hits, total = corpus.search_sparse(words, end), corpus.bm25_found(words)
    else:
        return Page(tuple(corpus.passages(range(start, min(end, corpus.size)))), None, start, corpus.size)
    here = hits[start:end]
    return Page(tuple(hit.passage for hit in here), tuple(hit.score for hit in here), start, total)


def _of_document(
    corpus: Corpus, words: str, vector: Vector | None, document: str, start: int, end: int
) -> Page:
    pieces = corpus.document(document)[1]
    if vector is None and not words.strip():
        return Page(tuple(pieces[start:end]), None, start, len(pieces))
    rows = [corpus.row(piece.id) for piece in pieces]
    scores = corpus.vectors(rows) @ vector if vector is not None else corpus.bm25(words, rows)
    ranked = np.lexsort((np.array(rows), -scores)).tolist()
    order = [at for at in ranked if vector is not None or scores[at] > 0]
    here = order[start:end]
    return Page(tuple(pieces[at] for at in here), tuple(float(scores[at]) for at in here), start, len(order))
