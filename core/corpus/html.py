"""The text of an HTML page as Markdown and its title, in time and memory that grow with its length alone."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.domain import encoding
from core.domain.errors import BadInput

_BLOCKS = """
address article aside blockquote dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5
h6 header hr li main nav ol p pre section table tr ul
"""
BLOCKS = frozenset(_BLOCKS.split())
CELLS = frozenset(("td", "th"))
BREAKS = BLOCKS | {"br"}
UNSAID = frozenset(("script", "style", "template", "rt", "rp"))  # no words of a heading either
NOT_TEXT = UNSAID | {"noscript", "svg", "iframe", "object"}
ROLES = frozenset(("navigation", "banner", "contentinfo", "search"))  # around the content of a page
PARTS = frozenset(("article", "aside", "main", "section"))  # a header or footer in one of them is its own
BETWEEN = frozenset(
    ("table", "thead", "tbody", "tfoot", "tr")
)  # white space in them is between rows or cells
DEEPEST = 512  # elements within one another, as in browsers; a closing tag is looked for in all of them
FED = 65_536  # bytes given to the parser at a time: after an error it reads no further ones
HEADINGS = {f"h{level}": "\n\n" + "#" * level + " " for level in range(1, 7)}
WIDEST, TALLEST = 50, 1_000  # columns and rows that one cell may span
AROUND, HIDDEN = "navigation, header and footer of the page (--html all keeps them)", "hidden elements"
KEPT_DROPPED = 20_000  # characters of what was left out for one reason
_HIDING = re.compile(r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<(?:meta[^<>]*?charset|\?xml[^<>]*?encoding)\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.IGNORECASE
)
_TEXTS = re.compile(
    r"utf|iso8859|iso2022|cp\d|koi8|mac|gb|big5|euc|shift_jis|hz|ascii|latin|tis|johab|ptcp|kz"
)
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>")


class _TooDeep(Exception):
    """Elements stand within one another deeper than DEEPEST."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as Markdown: a line a block, headings marked, rows of tables by cell."""

    title: str  # of the page, or else its first heading
    text: str
    guessed: str | None  # its encoding if the page does not declare one
    dropped: Mapping[str, str]  # the beginning of what was left out, by reason
    tables: int = 0


def read(raw: bytes, *, main: bool = False) -> Page:
    """Read a page; with `main` without its navigation, header and footer, identified by elements and roles.
    If nothing else remains, they are kept. Raises BadInput.
    """
    page, guessed = decoded(raw)
    try:
        root = _tree(page)
    except _TooDeep:
        try:
            root = _tree(_flat(page))
        except _TooDeep:
            raise BadInput(f"elements stand within one another deeper than {DEEPEST}") from None
    found = _PageWriter(main).page(root)
    if AROUND in found.dropped and not found.text:
        found = _PageWriter(main=False).page(root)
    return replace(found, guessed=guessed)


def decoded(raw: bytes) -> tuple[str, str | None]:
    """Decode a page by its byte order mark, its declaration, or a guess from its bytes; the name of a guessed
    encoding is returned, too.
    """
    marks = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    if name := next((name for mark, name in marks.items() if raw.startswith(mark)), None):
        return raw.decode(name, "replace"), None
    if (found := _DECLARED.search(raw[:4096])) and (declared := _known(found[1].decode("ascii", "replace"))):
        return raw.decode(declared, "replace"), None
    return encoding.decoded(raw)


def _known(declared: str) -> str | None:
    """Python's name of an encoding of texts; None for others, some of which take the square of the time.

    What is declared in letters of one byte is not UTF-16, whatever it says.
    """
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return None
    if name.startswith(("utf-16", "utf-32", "utf-7")):
        return "utf-8"
    return {"iso8859-1": "cp1252", "ascii": "cp1252"}.get(name, name) if _TEXTS.match(name) else None


def _tree(page: str) -> Any:
    """Parse a page, all of which is below the element `page`. Raises _TooDeep."""
    from lxml.etree import HTMLParser, TreeBuilder

    class Bounded(TreeBuilder):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.start("page", {})  # a page may end its <html> and go on

        def start(self, tag: str, attributes: Mapping[str, str]) -> Any:
            self.open.append(tag)
            if len(self.open) > DEEPEST:
                raise _TooDeep
            return super().start(tag, attributes)

        def end(self, tag: str) -> Any:
            self.open.pop()
            return super().end(tag)

        def comment(self, _text: str) -> None: ...  # lxml's own refuses some

        def pi(self, _target: str, _text: str | None = None) -> None: ...

        def close(self) -> Any:
            if len(self.open) > DEEPEST:
                raise _TooDeep  # lxml loses the one above if an end tag is missing
            while self.open:  # libxml2 leaves them so at the end of a page
                self.end(self.open[-1])
            return super().close()

    parser: Any = HTMLParser(target=Bounded(), encoding="utf-8", huge_tree=True)
    raw = page.encode("utf-8", "replace") or b"\n"  # without a byte lxml has no page
    for start in range(0, len(raw), FED):
        parser.feed(raw[start : start + FED])
    return parser.close()


def _flat(page: str) -> str:
    """Convert a page that is nested too deep for a tree to text, with blocks as line breaks and other tags
    removed. Content that is not text keeps its tags.
    """

    def put(tag: re.Match[str]) -> str:
        name = tag[2].lower()
        if name in NOT_TEXT or name == "title":
            return tag[0]
        return "<br>" if name in BREAKS else " " if name in CELLS else ""

    return _TAG.sub(put, page)


@dataclass(slots=True)
class _Table:
    """A table while it is written."""

    rows: int = 0
    above: dict[int, tuple[int, str]] = field(default_factory=dict)  # column -> rows still taken, and by what


class _PageWriter:
    """Writes the elements of a page as Markdown."""

    def __init__(self, main: bool, every: bool = False) -> None:
        """With `main` leave out what stands around the content; with `every` write hidden elements, too."""
        self._main, self._every = main, every
        self._parts: list[str] = []
        self._dropped: dict[str, list[str]] = {}
        self._open: list[_Table] = []
        self._tables = 0

    def page(self, root: Any) -> Page:
        self._element(root, inside=False)
        named = next(root.iter("title"), None)
        named = next(root.iter("h1"), None) if named is None else named
        title = " ".join(filter(None, map(str.strip, _words(named)))) if named is not None else ""
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        text = "\n".join("" if line.strip("# ") == "" else line for line in lines)
        dropped = {why: " ".join(parts)[:KEPT_DROPPED] for why, parts in self._dropped.items() if any(parts)}
        return Page(title, re.sub(r"\n{3,}", "\n\n", text).strip(), None, dropped, self._tables)

    def _element(self, node: Any, inside: bool, kept: bool = False) -> None:
        """Write an element; `inside`: it is within a part of the content, `kept`: so is all white space. It
        takes one frame of the stack for each element around it.
        """
        name = node.tag
        if name in NOT_TEXT or (name == "title" and node.getparent().tag == "head"):
            return
        if why := self._why_not(node, inside):
            rest = _PageWriter(main=False, every=True)
            rest._element(node, inside, kept)
            self._dropped.setdefault(why, []).append(" ".join("".join(rest._parts).split())[:KEPT_DROPPED])
            self._parts.append("\n")
            return
        if name == "tr" and self._open:
            self._row(node, inside)
            return
        if name == "table":
            self._open.append(_Table())
        self._parts.append(HEADINGS.get(name, "\n" if name in BREAKS else ""))
        inside, kept = inside or name in PARTS, kept or name in ("pre", "textarea")
        self._text(node.text, name, kept)
        for child in node:
            self._element(child, inside, kept)
            self._text(child.tail, name, kept)
        self._parts.append(" " if name in CELLS else "\n" if name in BLOCKS else "")
        if name == "table":
            self._tables += self._open.pop().rows > 0

    def _text(self, text: str | None, within: str, kept: bool) -> None:
        if text and not kept and not text.strip(" \t\n\f\r"):  # only what separates two elements
            text = "" if within in BETWEEN else "\n" if "\n" in text else " "
        self._parts.append(text or "")

    def _why_not(self, node: Any, inside: bool) -> str:
        """Return why an element is left out, as ARIA in HTML maps roles; "" if it is not."""
        if self._every:
            return ""
        if "hidden" in node.attrib or _HIDING.search(node.get("style", "")[:1_000]):
            return HIDDEN
        around = node.get("role", "").strip().lower() in ROLES or node.tag == "nav"
        around = around or (node.tag in ("header", "footer") and not inside)
        return AROUND if around and self._main else ""

    def _row(self, node: Any, inside: bool) -> None:
        """Write a row of plain cells as Markdown, with the cells that reach into it from above."""
        table, begin = self._open[-1], len(self._parts)
        self._parts.append("\n")
        self._text(node.text, "tr", kept=False)
        cells: list[tuple[str, Any]] = []
        for child in node:
            at = len(self._parts)
            self._element(child, inside)
            if child.tag in CELLS:
                cells.append((" ".join("".join(self._parts[at:]).split()), child))
            self._text(child.tail, "tr", kept=False)
        row, table.above = _spread(cells, table.above)
        if all(_is_plain(cell) for _, cell in cells) and len(row) > 1 and any(row):
            lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"]
            if not table.rows and all(cell.tag == "th" for _, cell in cells):
                lines.append("|" + " --- |" * len(row))
            self._parts[begin:] = ["\n".join(lines)]
            table.rows += 1
        self._parts.append("\n")


def _words(node: Any) -> Iterator[str]:
    """Yield the texts of an element but those nobody reads."""
    yield node.text or ""
    for child in node:
        if child.tag not in UNSAID:
            yield from _words(child)
        yield child.tail or ""


def _is_plain(cell: Any) -> bool:
    """Return True for a cell of text without blocks, or with a single one at its beginning."""
    blocks = (one for one in cell.iterdescendants() if one.tag in BREAKS)
    first, second = next(blocks, None), next(blocks, None)
    return first is None or (
        second is None and first.tag in ("p", "div", "br") and first is cell[0] and not cell.text
    )


def _spread(
    cells: Sequence[tuple[str, Any]], above: Mapping[int, tuple[int, str]]
) -> tuple[list[str], dict[int, tuple[int, str]]]:
    """Return the texts of a row by column, and what reaches into the next row, as `above` into this one."""
    row, below = list[str](), dict[int, tuple[int, str]]()
    for text, cell in cells:
        while len(row) in above:
            row.append(above[len(row)][1])
        for n in range(_span(cell, "colspan", WIDEST)):
            if (tall := _span(cell, "rowspan", TALLEST)) > 1:
                below[len(row)] = tall - 1, "" if n else text
            row.append("" if n else text)
    row += [above[column][1] for column in sorted(above) if column >= len(row)]
    return row, below | {at: (left - 1, text) for at, (left, text) in above.items() if left > 1}


def _span(cell: Any, name: str, most: int) -> int:
    """Return how many columns or rows a cell takes, from 1 to `most`."""
    given = cell.get(name, "").strip()
    return max(1, min(int(given), most)) if given.isdecimal() and len(given) < 9 else 1
