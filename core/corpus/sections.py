"""The start and end of the sections and sentences of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from core.corpus.types import Span
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
