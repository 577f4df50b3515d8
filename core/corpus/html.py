"""The text and the title of an HTML page, in time and memory that grow with its length alone."""

from __future__ import annotations

import codecs
import re
from typing import Any

from core.domain.errors import BadInput

BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "figcaption", "figure"),
        *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("p", "pre", "section", "table", "tr", "ul"),
    )
)
CELLS = frozenset(("td", "th"))
NOT_TEXT = frozenset(("script", "style", "noscript", "template", "head", "svg", "iframe", "object"))
UNSAID = frozenset(("script", "style", "template", "rt", "rp"))  # no words of a heading either
KEPT_SPACE = frozenset(("pre", "textarea"))
DEEPEST = 512  # elements within one another, as in browsers; a closing tag is looked for in all of them
FED = 65_536  # bytes given to the parser at once: what it is told to end, it ends behind them
_SPACE = " \t\n\f\r"
_DECLARED = re.compile(
    rb"<(?:meta[^<>]*?charset|\?xml[^<>]*?encoding)\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.IGNORECASE
)
_TEXTS = re.compile(
    r"utf|iso8859|iso2022|cp\d|koi8|mac|gb|big5|euc|shift_jis|hz|ascii|latin|tis|johab|ptcp|kz"
)
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>")


class _TooDeep(Exception):
    """Elements stand within one another deeper than DEEPEST."""


def text_of(raw: bytes) -> tuple[str, str]:
    """The title (or first heading) and the text of a page, a line a block; raises BadInput."""
    page = decoded(raw)
    try:
        return _parsed(page)
    except _TooDeep:
        try:
            return _parsed(_flat(page))
        except _TooDeep:
            raise BadInput(f"elements stand within one another deeper than {DEEPEST}") from None


def decoded(raw: bytes) -> str:
    """The page as text: by its byte order mark, as it declares, as UTF-8, or else as Windows-1252."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    ):  # fmt: skip
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if (found := _DECLARED.search(raw[:4096])) and (declared := _known(found[1].decode("ascii", "replace"))):
        return raw.decode(declared, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


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


def _parsed(page: str) -> tuple[str, str]:
    from lxml.etree import HTMLParser

    found = _Text()
    parser: Any = HTMLParser(target=found, encoding="utf-8", huge_tree=True)
    raw = page.encode("utf-8", "replace")
    for start in range(0, len(raw), FED):
        parser.feed(raw[start : start + FED])
    parser.close()
    return found.result()


def _flat(page: str) -> str:
    """The page with its blocks as line breaks and its other tags cut out: what is nested too deep to be read
    as a tree. What is in no text keeps its tags.
    """

    def put(tag: re.Match[str]) -> str:
        name = tag[2].lower()
        if name in NOT_TEXT or name == "title":
            return tag[0]
        return "<br>" if name in BLOCKS or name == "br" else " " if name in CELLS else ""

    return _TAG.sub(put, page)


class _Text:
    """What a parser is told of a page, put together as it comes: no tree is made."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._run: list[str] = []  # of text, since the last tag
        self._hidden = self._kept = self._unsaid = self._depth = 0
        self._headings: dict[str, list[str]] = {}
        self._within: dict[str, int] = {}  # how deep in the first title, and in the first h1

    def start(self, name: str, _attributes: object) -> None:
        """An element begins."""
        self._flush()
        self._depth += 1
        if self._depth > DEEPEST:
            raise _TooDeep
        self._hidden += name in NOT_TEXT
        self._unsaid += name in UNSAID
        self._kept += name in KEPT_SPACE
        if name in ("title", "h1") and (name in self._within or name not in self._headings):
            self._headings.setdefault(name, [])
            self._within[name] = self._within.get(name, 0) + 1
        if name in BLOCKS or name == "br":
            self._put("\n")

    def end(self, name: str) -> None:
        """An element ends."""
        self._flush()
        self._depth -= 1
        if name in CELLS:
            self._put(" ")
        if name in BLOCKS:
            self._put("\n")
        if name in self._within:
            self._within[name] -= 1
            if not self._within[name]:
                del self._within[name]
        self._hidden -= name in NOT_TEXT
        self._unsaid -= name in UNSAID
        self._kept -= name in KEPT_SPACE

    def data(self, text: str) -> None:
        """Some text."""
        self._run.append(text)

    def comment(self, _text: str) -> None:
        """Not shown."""
        self._flush()

    def pi(self, _target: str, _text: str | None = None) -> None:
        """Not shown."""
        self._flush()

    def close(self) -> None:
        """The page has ended."""
        self._flush()

    def result(self) -> tuple[str, str]:
        """Title and text."""
        title = " ".join(self._headings.get("title", self._headings.get("h1", [])))
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return title, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def _put(self, text: str) -> None:
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
            text = "\n" if "\n" in text else " "
        self._put(text)
        if self._within and (clean := text.strip()):
            for name in self._within:
                self._headings[name].append(clean)
