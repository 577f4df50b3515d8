"""Passages to look through, a page at a time, and a preview of how one document would be split."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.backends.base import Vector
from core.corpus.chunk import MARKDOWN, Chunking, passages
from core.corpus.corpus import Corpus
from core.corpus.types import Document
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


WINDOW = 12_000  # characters drawn at once: a book must not become one page
_SENTENCE_ENDS = re.compile(r"[.!?:;…。！？।؟][\"'”’»)\]*_`]*$")
_HEADING = re.compile(r"#{1,6}[ \t]+\S")


@dataclass(frozen=True, slots=True)
class Segment:
    """The characters [start, end) of a document, and the numbers (from 1) of the passages that hold them.

    None holds the white space between two passages; several hold what they overlap in.
    """

    start: int
    end: int
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """A document and its passages; lengths are in characters.

    `shared` characters are held by more than one passage. `inside` are the numbers of passages that end
    within a sentence, `headed` of those that end with a heading, which is so cut off from its text.
    """

    document: Document
    chunking: Chunking
    passages: tuple[Passage, ...]
    shared: int
    inside: tuple[int, ...]
    headed: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Mean length of a passage."""
        return sum(p.end - p.start for p in self.passages) / len(self.passages)

    @property
    def longest(self) -> int:
        """Length of the longest passage."""
        return max(p.end - p.start for p in self.passages)

    @property
    def shortest(self) -> int:
        """Length of the shortest passage."""
        return min(p.end - p.start for p in self.passages)

    @property
    def windows(self) -> int:
        """Count the windows of the text, at least one."""
        return max(1, -(-len(self.document.text) // WINDOW))

    def window(self, number: int) -> list[Segment]:
        """Return the segments of window `number`, from 0; the last one for a higher number."""
        start = WINDOW * min(max(0, number), self.windows - 1)
        return segments(self.passages, start, min(start + WINDOW, len(self.document.text)))


def preview(document: Document, chunking: Chunking) -> Preview:
    """Split a document with the indexing code, so that its passages equal those of an index."""
    cut = tuple(passages(document, chunking))
    numbered = list(enumerate(pairwise(cut), 1))
    return Preview(
        document,
        chunking,
        cut,
        sum(max(0, before.end - after.start) for before, after in pairwise(cut)),
        tuple(number for number, (one, two) in numbered if _inside(document.text, one, two)),
        tuple(number for number, (one, _) in numbered if _headed(document, one)),
    )


def segments(cut: Sequence[Passage], start: int, end: int) -> list[Segment]:
    """Return the text [start, end) as consecutive segments, with a new one at each edge of a passage."""
    near = [(number, p) for number, p in enumerate(cut, 1) if p.start < end and p.end > start]
    edges = {start, end, *(edge for _, p in near for edge in (p.start, p.end) if start < edge < end)}
    return [
        Segment(a, b, tuple(number for number, p in near if p.start <= a and p.end >= b))
        for a, b in pairwise(sorted(edges))
    ]


def _inside(text: str, before: Passage, after: Passage) -> bool:
    """Return True if no sentence ends at the end of `before`: no final mark and no line break follow."""
    gap = text[before.end : max(before.end, after.start)] or text[before.end : before.end + 1]
    ends = "\n" in gap or before.text.endswith("\n") or _SENTENCE_ENDS.search(before.text.rstrip())
    return not ends


def _headed(document: Document, passage: Passage) -> bool:
    lines = passage.text.strip().splitlines()
    return bool(
        document.id.lower().endswith(MARKDOWN) and len(lines) > 1 and _HEADING.match(lines[-1].strip())
    )
