"""Cuts documents into passages at paragraph and sentence boundaries, keeping character offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.corpus.types import Document
from core.errors import BadInput
from core.types import Passage

if TYPE_CHECKING:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

MARKDOWN = (".md", ".markdown")
SMALLEST = 8  # a piece under 1/8 of the size, such as a heading alone, joins its neighbour


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut: `size` and `overlap` in characters; size 0 keeps each document whole.

    A passage holds at most `size` characters, a quarter more where a heading or a scrap is joined on.
    """

    size: int = 700
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.size and not 50 <= self.size <= 100_000:
            raise BadInput(
                f"chunk size {self.size}: give 50 to 100000 characters, or 0 to keep documents whole"
            )
        if not 0 <= self.overlap <= self.size // 2:
            raise BadInput(f"chunk overlap {self.overlap}: give 0 to {self.size // 2}, half of the size")

    def label(self) -> str:
        """The choice in words, as shown with the corpus."""
        if not self.size:
            return "one passage a document"
        return (
            f"up to {self.size} characters, {self.overlap} overlapping, at paragraph and sentence boundaries"
        )


WHOLE = Chunking(0)


def passages(document: Document, chunking: Chunking) -> list[Passage]:
    """The passages of a document in order; `passage.text == document.text[passage.start:passage.end]`.

    Ids are `document:start-end`, or the document's own id when documents are kept whole. Together the
    passages hold every character but white space at their edges.
    """
    text = document.text
    if not chunking.size:
        return [Passage(document.id, document.id, document.title, text, 0, len(text))]
    pieces = _splitter(chunking, document.id.lower().endswith(MARKDOWN)).chunk_indices(text)
    spans = _joined([(start, start + len(piece)) for start, piece in pieces], chunking.size // SMALLEST)
    return [
        Passage(f"{document.id}:{start}-{end}", document.id, document.title, text[start:end], start, end)
        for start, end in spans or [(0, len(text))]
    ]


def _joined(spans: Sequence[tuple[int, int]], least: int) -> list[tuple[int, int]]:
    """`spans` with each one shorter than `least` joined to the next, or to the one before at the end."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] - joined[-1][0] < least:
            start = joined.pop()[0]
        joined.append((start, end))
    if len(joined) > 1 and joined[-1][1] - joined[-1][0] < least:
        _, end = joined.pop()
        joined[-1] = (joined[-1][0], end)
    return joined


@lru_cache(64)
def _splitter(chunking: Chunking, markdown: bool) -> MarkdownSplitter | TextSplitter:
    import semantic_text_splitter as splitters

    kind: Any = splitters.MarkdownSplitter if markdown else splitters.TextSplitter
    splitter: MarkdownSplitter | TextSplitter = kind(chunking.size, chunking.overlap)
    return splitter
