"""The text of an HTML page as Markdown and its title, in time and memory that grow with its length alone."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
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
NOT_TEXT = frozenset(("script", "style", "noscript", "template", "head", "svg", "iframe", "object"))
UNSAID = frozenset(("script", "style", "template", "rt", "rp"))  # no words of a heading either
ROLES = frozenset(("navigation", "banner", "contentinfo", "search"))  # around the content of a page
PARTS = frozenset(("article", "aside", "main", "section"))  # a header or footer in one of them is its own
IN_HEAD = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
KEPT_SPACE = frozenset(("pre", "textarea"))
DEEPEST = 512  # elements within one another, as in browsers; a closing tag is looked for in all of them
FED = 65_536  # bytes given to the parser at once: what it is told to end, it ends behind them
_SPACE = " \t\n\f\r"
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
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
    found = _read(page, main)
    if AROUND in found.dropped and not found.text:
        found = _read(page, main=False)
    return replace(found, guessed=guessed)


def _read(page: str, main: bool) -> Page:
    try:
        return _parsed(page, main)
    except _TooDeep:
        try:
            return _parsed(_flat(page), main)
        except _TooDeep:
            raise BadInput(f"elements stand within one another deeper than {DEEPEST}") from None


def decoded(raw: bytes) -> tuple[str, str | None]:
    """Decode a page by its byte order mark, its declaration, or a guess from its bytes; the name of a guessed
    encoding is returned, too.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if raw.startswith(mark):
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


def _parsed(page: str, main: bool) -> Page:
    from lxml.etree import HTMLParser

    found = _Text(main)
    parser: Any = HTMLParser(target=found, encoding="utf-8", huge_tree=True)
    raw = page.encode("utf-8", "replace")
    for start in range(0, len(raw), FED):
        parser.feed(raw[start : start + FED])
    parser.close()
    return found.result()


def _flat(page: str) -> str:
    """Convert a page that is nested too deep for a tree to text, with blocks as line breaks and other tags
    removed. Content that is not text keeps its tags.
    """

    def put(tag: re.Match[str]) -> str:
        name = tag[2].lower()
        if name in NOT_TEXT or name == "title":
            return tag[0]
        return "<br>" if name in BLOCKS or name == "br" else " " if name in CELLS else ""

    return _TAG.sub(put, page)


@dataclass(slots=True)
class _Row:
    """A row of a table while it is read."""

    begin: int  # of its text in the parts
    cell: int = -1  # where the open cell's text begins, or -1
    cells: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)  # columns and rows that each cell takes
    header: bool = True  # all its cells are <th>
    plain: bool = True  # no cell holds blocks


@dataclass(slots=True)
class _Table:
    """A table while it is read."""

    rows: int = 0
    row: _Row | None = None
    below: dict[int, tuple[int, str]] = field(default_factory=dict)  # column -> rows still taken, and by what


class _Text:
    """Collects the text of a page from a parser's events; builds no tree."""

    def __init__(self, main: bool) -> None:
        self._main = main
        self._kinds: list[str] = []  # of each open element: why it is left out, "part" of the content, or ""
        self._outside = self._inside = 0  # how many are left out, and how many are parts
        self._dropped: dict[str, list[str]] = {}
        self._tables: list[_Table] = []
        self._found_tables = 0
        self._head = False  # within it
        self._parts: list[str] = []
        self._run: list[str] = []  # of text, since the last tag
        self._hidden = self._kept = self._unsaid = self._depth = 0
        self._headings: dict[str, list[str]] = {}
        self._within: dict[str, int] = {}  # how deep in the first title, and in the first h1

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        self._flush()
        self._depth += 1
        self._begun(name, attributes)
        if self._depth > DEEPEST:
            raise _TooDeep
        if name not in IN_HEAD:
            self._leave_head()  # libxml2 does not know that a header, say, ends it
        self._head = self._head or name == "head"
        self._hidden += name in NOT_TEXT
        self._unsaid += name in UNSAID
        self._kept += name in KEPT_SPACE
        if name in ("title", "h1") and (name in self._within or name not in self._headings):
            self._headings.setdefault(name, [])
            self._within[name] = self._within.get(name, 0) + 1
        self._tabular(name, attributes)
        if name in BLOCKS or name == "br":
            self._put("\n")
        if name in HEADINGS:
            self._put("\n" + HEADINGS[name])

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        self._flush()
        self._depth -= 1
        self._ended()
        if name in CELLS:
            self._end_cell()
            self._put(" ")
        if name == "tr":
            self._end_row()
        if name == "table" and self._tables:
            self._tables.pop()
        if name in BLOCKS:
            self._put("\n")
        if name in self._within:
            self._within[name] -= 1
            if not self._within[name]:
                del self._within[name]
        if name == "head":
            self._leave_head()
        else:
            self._hidden -= name in NOT_TEXT
        self._unsaid -= name in UNSAID
        self._kept -= name in KEPT_SPACE

    def data(self, text: str) -> None:
        """Handle text."""
        self._run.append(text)

    def comment(self, _text: str) -> None:
        """Not shown."""
        self._flush()

    def pi(self, _target: str, _text: str | None = None) -> None:
        """Not shown."""
        self._flush()

    def close(self) -> None:
        """Handle the end of the page."""
        self._flush()

    def result(self) -> Page:
        """Return the page as far as it was read."""
        title = " ".join(self._headings.get("title", self._headings.get("h1", [])))
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        text = re.sub(
            r"\n{3,}", "\n\n", "\n".join("" if line.strip("# ") == "" else line for line in lines)
        ).strip()
        dropped = {
            why: " ".join("".join(parts).split())[:KEPT_DROPPED] for why, parts in self._dropped.items()
        }
        return Page(
            title, text, None, {why: text for why, text in dropped.items() if text}, self._found_tables
        )

    def _leave_head(self) -> None:
        self._hidden -= self._head
        self._head = False

    def _begun(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note whether the element is hidden or stands around the content, as ARIA in HTML maps roles."""
        role = attributes.get("role", "").strip().lower()
        around = role in ROLES or name == "nav" or (name in ("header", "footer") and not self._inside)
        hidden = "hidden" in attributes or _HIDING.search(attributes.get("style", "")[:1_000])
        kind = HIDDEN if hidden else AROUND if around and self._main else "part" if name in PARTS else ""
        self._kinds.append(kind)
        self._outside += kind in (HIDDEN, AROUND)
        self._inside += kind == "part"

    def _ended(self) -> None:
        kind = self._kinds.pop() if self._kinds else ""
        self._outside -= kind in (HIDDEN, AROUND)
        self._inside -= kind == "part"

    def _tabular(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note that a table, a row or a cell begins, or that a cell holds blocks."""
        table = self._tables[-1] if self._tables else None
        row = table.row if table else None
        if name == "table":
            if row is not None:
                row.plain = False  # a table in a table is layout
            self._tables.append(_Table())
        elif name == "tr" and table is not None:
            table.row = _Row(len(self._parts))
        elif name in CELLS and row is not None:
            self._end_cell()
            row.cell = len(self._parts)
            row.header = row.header and name == "th"
            row.spans.append((_span(attributes, "colspan", WIDEST), _span(attributes, "rowspan", TALLEST)))
        elif row is not None and row.cell >= 0 and (name in BLOCKS or name == "br"):
            row.plain = row.plain and name in ("p", "div", "br") and not self._parts[row.cell :]

    def _end_cell(self) -> None:
        row = self._tables[-1].row if self._tables else None
        if row is not None and row.cell >= 0:
            if row.plain:
                row.cells.append(" ".join("".join(self._parts[row.cell :]).split()))
            row.cell = -1

    def _end_row(self) -> None:
        """Write a row of plain cells as Markdown, with those that reach into it from above."""
        table = self._tables[-1] if self._tables else None
        row = table.row if table else None
        if table is None or row is None:
            return
        self._end_cell()
        table.row = None
        cells, column = list[str](), 0
        above = table.below
        table.below = {}
        for text, (wide, tall) in zip(row.cells, row.spans, strict=False):
            while column in above:
                cells.append(above[column][1])
                column += 1
            for n in range(wide):
                cells.append("" if n else text)
                if tall > 1:
                    table.below[column] = (tall - 1, "" if n else text)
                column += 1
        cells += [above[column][1] for column in sorted(above) if column >= len(cells)]
        table.below.update({at: (left - 1, text) for at, (left, text) in above.items() if left > 1})
        if not row.plain or len(cells) < 2 or not any(cells) or self._outside or self._hidden:
            return
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"]
        lines += ["|" + " --- |" * len(cells)] if row.header and not table.rows else []
        self._parts[row.begin :] = ["\n".join(lines)]
        self._found_tables += not table.rows
        table.rows += 1

    def _put(self, text: str) -> None:
        if self._outside:
            if not self._hidden:
                why = HIDDEN if HIDDEN in self._kinds else AROUND
                parts = self._dropped.setdefault(why, [])
                if len(parts) < KEPT_DROPPED:
                    parts.append(text)
            text = "\n"
        if not self._hidden:
            self._parts.append(text)

    def _flush(self) -> None:
        if not self._run:
            return
        text = "".join(self._run)
        self._run.clear()
        if self._unsaid:
            return
        if not self._kept and not text.strip(_SPACE):  # only what separates two elements
            if self._tables and ((row := self._tables[-1].row) is None or row.cell < 0):
                return  # between rows or cells
            text = "\n" if "\n" in text else " "
        self._put(text)
        if self._within and (clean := text.strip()):
            for name in self._within:
                self._headings[name].append(clean)


def _span(attributes: Mapping[str, str], name: str, most: int) -> int:
    """Return how many columns or rows a cell takes, from 1 to `most`."""
    given = attributes.get(name, "").strip()
    return max(1, min(int(given), most)) if given.isdecimal() and len(given) < 9 else 1
