"""A preview of one document's passages, their edges and their cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.corpus.chunk import MARKDOWN, Chunking, passages
from core.corpus.types import Document
from core.domain.types import Passage

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
