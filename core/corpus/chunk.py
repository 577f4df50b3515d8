"""Cuts documents into passages at paragraph and sentence boundaries, keeping character offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, cast

from core.corpus import endings
from core.corpus.types import Document, Span
from core.domain.errors import BadInput
from core.domain.types import Passage

if TYPE_CHECKING:
    from semantic_text_splitter import CodeSplitter, MarkdownSplitter, TextSplitter
from itertools import pairwise

from core.domain.text import ABBREVIATED

_HEADING = re.compile(r" {0,3}#{1,6}(?:[^\S\n]|$)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,})")
LONGEST_TITLE = 120  # characters of a line that is taken for a heading because it is underlined
# A sentence ends at its full stop, at an empty line, and before a heading, a row of a table or a list item.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]{0,3}\s+|\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[#|*+-]|\d{1,3}[.)]))")


def sections(text: str, *, markdown: bool) -> list[Span]:
    """Return the sections of a text: each from a heading to the next, and the text before the first.

    A heading is a line of Markdown that begins with `#`, outside of code, or in any text a line after an
    empty one that is underlined with `===`, `---` or `~~~`. A heading without text starts the section of the
    heading below it.
    """
    starts = list(_headings(text, markdown))
    edges = sorted({0, *(start for start, _ in starts), len(text)})
    bodies = dict(starts)
    found: list[Span] = []
    begin: int | None = None
    for start, end in pairwise(edges):
        begin = start if begin is None else begin
        alone = start in bodies and not text[bodies[start] : end].strip()
        if alone and end < len(text):
            continue
        if span := _trimmed(text, begin, end):
            found.append(span)
        begin = None
    return found


def sentences(text: str, start: int, end: int) -> list[Span]:
    """Return the sentences of `text[start:end]`, without surrounding white space."""
    found: list[Span] = []
    begin = start
    for match in _END.finditer(text, start, end):
        stop = match.start()
        if match.group().startswith("\n") or not ABBREVIATED.search(text, max(begin, stop - 12), stop):
            found.append((begin, match.end()))
            begin = match.end()
    found.append((begin, end))
    return [span for one in found if (span := _trimmed(text, *one))]


def packed(spans: Sequence[Span], size: int) -> list[Span]:
    """Neighbouring spans put together while they reach over at most `size` characters."""
    found: list[Span] = []
    for start, end in spans:
        if found and end - found[-1][0] <= size:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _headings(text: str, markdown: bool) -> Iterator[tuple[int, int]]:
    """Yield the start of each heading, and of its content."""
    at, fence = 0, ""
    free, title = True, ""  # whether the line before the last was empty, and the last line
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line) if markdown else None
        if mark and fence in ("", mark.group(1)):
            fence = "" if fence else mark.group(1)
        elif not fence:
            if markdown and _HEADING.match(line):
                yield at, at + len(line)
            elif free and _UNDERLINE.fullmatch(line.strip()) and _is_title(title, markdown):
                yield at - len(title), at + len(line)
        free, title = not title.strip(), line
        at += len(line)


def _is_title(line: str, markdown: bool) -> bool:
    words = line.strip()
    return (
        0 < len(words) <= LONGEST_TITLE
        and any(map(str.isalnum, words))
        and not (markdown and (_HEADING.match(line) or words.startswith("|")))
    )


def _trimmed(text: str, start: int, end: int) -> Span | None:
    """Return the span without white space at its edges, or None if nothing else is in it."""
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    return (start + left, start + len(part.rstrip())) if left < len(part) else None


MARKDOWN = endings.MARKED
SMALLEST = 8  # a piece under 1/8 of the size, such as a heading alone, joins its neighbour
WINDOW, PIECES = 20_000, 64  # characters, and pieces, that a text is cut in at once: see `pieces`
SETTLED = 4  # pieces from the end of a window on, what follows it no longer changes how it is cut


By = Literal["size", "headings", "sentences"]


@dataclass(frozen=True, slots=True)
class Chunking:
    """The way documents are split into passages.

    A passage has at most `size` characters, a quarter more if a heading or a scrap is joined to it. `by`
    "headings": one passage per section, longer ones split to `size`. `by` "sentences": whole sentences of one
    section, up to `size`; a longer sentence is its own passage.
    """

    size: int = 700  # characters; 0 keeps each document whole
    overlap: int = 0  # characters
    by: By = "size"

    def __post_init__(self) -> None:
        if self.by not in ("size", *NAMED):
            raise BadInput(f"documents are cut by size, {' or '.join(NAMED)}, not by {self.by!r}")
        if self.by != "size" and (not self.size or self.overlap):
            raise BadInput(f"chunking by {self.by} needs a size above 0 and no overlap")
        if self.size and not 50 <= self.size <= 100_000:
            allowed = "from 50 to 100000 characters, or 0 to keep documents whole"
            raise BadInput(f"chunk size {self.size} must be {allowed}")
        if not 0 <= self.overlap <= self.size // 2:
            allowed = f"from 0 to {self.size // 2}, half the chunk size"
            raise BadInput(f"chunk overlap {self.overlap} must be {allowed}")

    def label(self) -> str:
        """Return the choice in words, as shown with the corpus."""
        if self.by == "headings":
            return f"a passage a section, sections above {self.size} characters cut at paragraphs"
        if self.by == "sentences":
            return f"whole sentences, up to {self.size} characters, within a section"
        if not self.size:
            return "one passage per document"
        where = "at paragraph and sentence boundaries"
        return f"up to {self.size} characters, {self.overlap} overlapping, {where}"

    @property
    def key(self) -> str:
        """The name it goes by: 512, 512-64 (with overlap), whole, headings, sentences."""
        if self.by != "size":
            return self.by
        overlap = f"-{self.overlap}" if self.overlap else ""
        return f"{self.size}{overlap}" if self.size else "whole"


NAMED: dict[str, int] = {"headings": 2000, "sentences": 300}  # and the characters of a passage
WHOLE = Chunking(0)
KEY = re.compile(r"[0-9]{2,6}(?:-[0-9]{1,6})?|whole|headings|sentences")
ALLOWED = (
    "a size in characters from 50 to 100000 (512), a size and an overlap (512/64), headings, sentences or "
    "whole"
)


def is_key(key: str) -> bool:
    """Return True if `key` names a chunking."""
    try:
        return bool(KEY.fullmatch(key)) and chunking_of(key).key == key
    except BadInput:
        return False


def chunking_of(key: str) -> Chunking:
    """Return the chunking called `key`. Raises BadInput, listing the known ones, if there is no such
    chunking.
    """
    name = key.strip().lower().replace("/", "-")
    if not KEY.fullmatch(name):
        raise BadInput(f"unknown chunking {key.strip()!r}; give {ALLOWED}")
    if name in NAMED:
        return Chunking(NAMED[name], by=cast("By", name))
    if name == "whole":
        return WHOLE
    size, _, overlap = name.partition("-")
    try:
        return Chunking(int(size), int(overlap or 0))
    except BadInput as error:
        raise BadInput(f"chunking {key.strip()!r}: {error}") from None


def passages(document: Document, chunking: Chunking) -> list[Passage]:
    """Return the passages of a document in order; `passage.text == document.text[passage.start:passage.end]`.

    Ids are `document:start-end`, or the document's own id if documents are kept whole. Together the passages
    contain every character except white space at their edges.
    """
    return made(document, spans(document, chunking), chunking)


def made(document: Document, cut: Sequence[Span], chunking: Chunking) -> list[Passage]:
    """Return the passages of a document split at `cut`."""
    id, title, text = document.id, document.title, document.text
    if not chunking.size:
        return [Passage(id, id, title, text, 0, len(text))]
    return [Passage(f"{id}:{start}-{end}", id, title, text[start:end], start, end) for start, end in cut]


def spans(document: Document, chunking: Chunking) -> list[Span]:
    """Return the start and end of each passage of a document, in order."""
    text, size = document.text, chunking.size
    if not size:
        return [(0, len(text))]
    markdown = document.id.lower().endswith(MARKDOWN)
    grammar = endings.GRAMMARS.get(PurePosixPath(document.id.lower()).suffix, "")
    if chunking.by != "size":
        return _within_sections(text, chunking, markdown) or [(0, len(text))]
    found = pieces(text, size, chunking.overlap, markdown=markdown, grammar=grammar)
    return _joined(list(found), size // SMALLEST) or [(0, len(text))]


def _within_sections(text: str, chunking: Chunking, markdown: bool) -> list[Span]:
    """Return the passages of a document, none of which contains parts of two sections."""
    most = max(chunking.size, NAMED["headings"]) if chunking.by == "sentences" else chunking.size
    found: list[Span] = []
    for start, end in sections(text, markdown=markdown):
        parts = [(start, end)]
        if chunking.by == "sentences":
            parts = packed(sentences(text, start, end), chunking.size)
        for first, last in parts:
            if last - first <= most:
                found.append((first, last))
                continue
            cut = pieces(text[first:last], most, markdown=markdown)
            joined = _joined(list(cut), most // SMALLEST)
            found += [(first + a, first + b) for a, b in joined]
    return found


def pieces(
    text: str,
    size: int | tuple[int, int],
    overlap: int = 0,
    *,
    markdown: bool = False,
    grammar: str = "",
) -> Iterator[Span]:
    """Yield the start and end of the pieces of a text: of at most `size` characters, or of about that many.
    With one of `endings.GRAMMARS` they are functions and classes, as whole as they fit.

    The splitter scans the whole remaining text for each piece, so a long text is passed to it in windows;
    pieces near the end of a window are split again with the following text.
    """
    if isinstance(size, int) and 0 < len(text) <= size and not (text[0].isspace() or text[-1].isspace()):
        yield 0, len(text)  # as the splitter has it, which takes a while to say so
        return
    splitter = _splitter(size, overlap, markdown, grammar)
    most = size if isinstance(size, int) else size[1]
    at = 0
    while at < len(text):
        end = min(len(text), at + max(WINDOW, PIECES * most))
        last = end == len(text)
        found = [(at + start, at + start + len(one)) for start, one in splitter.chunk_indices(text[at:end])]
        settled = [span for span in found if last or span[1] <= end - SETTLED * most]
        if not settled and found and found[0][0] == at:  # one that fills the window: there is no other way
            settled = found[:1]
        yield from settled
        at = end if len(settled) == len(found) else found[len(settled)][0]


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
def _splitter(
    size: int | tuple[int, int], overlap: int, markdown: bool, grammar: str
) -> CodeSplitter | MarkdownSplitter | TextSplitter:
    import semantic_text_splitter as splitters

    if grammar:
        package, _, function = grammar.partition(":")
        return splitters.CodeSplitter(getattr(import_module(package), function)(), size, overlap)
    return splitters.MarkdownSplitter(size, overlap) if markdown else splitters.TextSplitter(size, overlap)
