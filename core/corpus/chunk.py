"""Cuts documents into passages at paragraph and sentence boundaries, keeping character offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.corpus import endings
from core.corpus.types import Document, Span
from core.domain.errors import BadInput
from core.domain.types import Passage

if TYPE_CHECKING:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

MARKDOWN = (*endings.MARKDOWN, *endings.CONVERTED)  # what such a file becomes
SMALLEST = 8  # a piece under 1/8 of the size, such as a heading alone, joins its neighbour
WINDOW, PIECES = 20_000, 64  # characters, and pieces, that a text is cut in at once: see `pieces`
SETTLED = 4  # pieces from the end of a window on, what follows it no longer changes how it is cut


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
                f"chunk size {self.size} must be from 50 to 100000 characters, or 0 to keep documents whole"
            )
        if not 0 <= self.overlap <= self.size // 2:
            raise BadInput(
                f"chunk overlap {self.overlap} must be from 0 to {self.size // 2}, half the chunk size"
            )

    def label(self) -> str:
        """The choice in words, as shown with the corpus."""
        if not self.size:
            return "one passage per document"
        return (
            f"up to {self.size} characters, {self.overlap} overlapping, at paragraph and sentence boundaries"
        )


WHOLE = Chunking(0)


def passages(document: Document, chunking: Chunking) -> list[Passage]:
    """The passages of a document in order; `passage.text == document.text[passage.start:passage.end]`.

    Ids are `document:start-end`, or the document's own id when documents are kept whole. Together the
    passages hold every character but white space at their edges.
    """
    return made(document, spans(document, chunking), chunking)


def made(document: Document, cut: Sequence[Span], chunking: Chunking) -> list[Passage]:
    """The passages of a document that was cut at `cut`."""
    id, title, text = document.id, document.title, document.text
    if not chunking.size:
        return [Passage(id, id, title, text, 0, len(text))]
    return [Passage(f"{id}:{start}-{end}", id, title, text[start:end], start, end) for start, end in cut]


def spans(document: Document, chunking: Chunking) -> list[Span]:
    """Where the passages of a document begin and end, in order."""
    text, size = document.text, chunking.size
    if not size:
        return [(0, len(text))]
    found = pieces(text, size, chunking.overlap, markdown=document.id.lower().endswith(MARKDOWN))
    return _joined(list(found), size // SMALLEST) or [(0, len(text))]


def long(text: str, chunking: Chunking) -> bool:
    """Whether a text is cut in more than one window."""
    return bool(chunking.size) and len(text) > _window(chunking.size)


def pieces(
    text: str, size: int | tuple[int, int], overlap: int = 0, *, markdown: bool = False
) -> Iterator[Span]:
    """Where the pieces of a text begin and end: of at most `size` characters, or of about as many.

    The splitter looks at all that is left of its text for each piece it makes, so a long text is given to it
    a window at a time; what ends near the end of a window is cut again with what follows.
    """
    if isinstance(size, int) and 0 < len(text) <= size and not (text[0].isspace() or text[-1].isspace()):
        yield 0, len(text)  # as the splitter has it, which takes a while to say so
        return
    splitter = _splitter(size, overlap, markdown)
    most = size if isinstance(size, int) else size[1]
    at = 0
    while at < len(text):
        end = min(len(text), at + _window(most))
        last = end == len(text)
        found = [(at + start, at + start + len(one)) for start, one in splitter.chunk_indices(text[at:end])]
        settled = [span for span in found if last or span[1] <= end - SETTLED * most]
        if not settled and found and found[0][0] == at:  # one that fills the window: there is no other way
            settled = found[:1]
        yield from settled
        at = end if len(settled) == len(found) else found[len(settled)][0]


def _window(size: int) -> int:
    return max(WINDOW, PIECES * size)


def _joined(spans: Sequence[Span], least: int) -> list[Span]:
    """`spans` with each one shorter than `least` joined to the next, or to the one before at the end."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and joined[-1][1] - joined[-1][0] < least:
            start = joined.pop()[0]
        joined.append((start, end))
    if len(joined) > 1 and joined[-1][1] - joined[-1][0] < least:
        _, end = joined.pop()
        joined[-1] = (joined[-1][0], end)
    return joined


@lru_cache(64)
def _splitter(size: int | tuple[int, int], overlap: int, markdown: bool) -> MarkdownSplitter | TextSplitter:
    import semantic_text_splitter as splitters

    kind: Any = splitters.MarkdownSplitter if markdown else splitters.TextSplitter
    splitter: MarkdownSplitter | TextSplitter = kind(size, overlap)
    return splitter
