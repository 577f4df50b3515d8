"""The text and the title of an HTML page, in time and memory that grow with its length alone."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.domain import encoding
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
ROLES = frozenset(("navigation", "banner", "contentinfo", "search"))  # around the content of a page
PARTS = frozenset(("article", "aside", "main", "section"))  # a header or footer in one of them is its own
IN_HEAD = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
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


@dataclass(frozen=True, slots=True)
class Page:
    """The title (or first heading) of a page and its text, a line a block.

    `guessed`: its encoding where the page does not say it. `dropped`: text around the content was left out.
    """

    title: str
    text: str
    guessed: str | None
    dropped: bool


def read(raw: bytes, *, main: bool = False) -> Page:
    """A page; with `main` without what stands around its content: navigation, header and footer of the page,
    by their elements and roles. Where nothing else is there, they are kept. Raises BadInput.
    """
    page, guessed = decoded(raw)
    title, text, dropped = _read(page, main)
    if dropped and not text:
        title, text, dropped = _read(page, main=False)
    return Page(title, text, guessed, dropped)


def text_of(raw: bytes) -> tuple[str, str]:
    """The title and all text of a page; raises BadInput."""
    page = read(raw)
    return page.title, page.text


def _read(page: str, main: bool) -> tuple[str, str, bool]:
    try:
        return _parsed(page, main)
    except _TooDeep:
        try:
            return _parsed(_flat(page), main)
        except _TooDeep:
            raise BadInput(f"elements stand within one another deeper than {DEEPEST}") from None


def decoded(raw: bytes) -> tuple[str, str | None]:
    """The page as text, by its byte order mark, as it declares, or as its bytes look: then with the name of
    that encoding.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    ):  # fmt: skip
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


def _parsed(page: str, main: bool) -> tuple[str, str, bool]:
    from lxml.etree import HTMLParser

    found = _Text(main)
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

    def __init__(self, main: bool) -> None:
        self._main = main
        self._around: list[str] = []  # of each open element: "around" the content, a "part" of it, or ""
        self._outside = self._inside = 0  # how many of either
        self._dropped = False
        self._head = False  # within it
        self._parts: list[str] = []
        self._run: list[str] = []  # of text, since the last tag
        self._hidden = self._kept = self._unsaid = self._depth = 0
        self._headings: dict[str, list[str]] = {}
        self._within: dict[str, int] = {}  # how deep in the first title, and in the first h1

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._flush()
        self._depth += 1
        if self._main:
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
        if name in BLOCKS or name == "br":
            self._put("\n")

    def end(self, name: str) -> None:
        """An element ends."""
        self._flush()
        self._depth -= 1
        if self._main:
            self._ended()
        if name in CELLS:
            self._put(" ")
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

    def result(self) -> tuple[str, str, bool]:
        """Title and text, and whether some was left out because it stands around the content."""
        title = " ".join(self._headings.get("title", self._headings.get("h1", [])))
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return title, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), self._dropped

    def _leave_head(self) -> None:
        self._hidden -= self._head
        self._head = False

    def _begun(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note whether the element stands around the content, as ARIA in HTML maps elements to roles."""
        role = attributes.get("role", "").strip().lower()
        around = role in ROLES or name == "nav" or (name in ("header", "footer") and not self._inside)
        kind = "around" if around else "part" if name in PARTS else ""
        self._around.append(kind)
        self._outside += kind == "around"
        self._inside += kind == "part"

    def _ended(self) -> None:
        kind = self._around.pop() if self._around else ""
        self._outside -= kind == "around"
        self._inside -= kind == "part"

    def _put(self, text: str) -> None:
        if self._outside:
            self._dropped = self._dropped or not (self._hidden or text.isspace())
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
            text = "\n" if "\n" in text else " "
        self._put(text)
        if self._within and (clean := text.strip()):
            for name in self._within:
                self._headings[name].append(clean)
