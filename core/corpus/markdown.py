"""The headings and the title of a Markdown text, as CommonMark defines them."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from core.corpus.endings import MARKED
from core.corpus.metadata import header
from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.types import Passage

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

NAMED_DOCUMENTS = 2_000  # documents of a corpus whose passages' names are kept
FRONT = re.compile(r"\A---[ \t]*\n((?:[^\n]{0,2000}\n){0,100}?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
TOML_FRONT = re.compile(r"\A\+\+\+[ \t]*\n((?:[^\n]{0,2000}\n){0,100}?)\+\+\+[ \t]*(?:\n|\Z)")
_POSSIBLE = re.compile(r"^ {0,3}(?:#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading with the characters [start, end) of its lines."""

    level: int  # from 1
    text: str
    start: int
    end: int


def headings(text: str, most_level: int = 6) -> Iterator[Heading]:
    """Yield the headings outside of code, lists and quotes, up to a level."""
    if not _POSSIBLE.search(text):
        return
    edges = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    tokens = _parser().parse(text)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and not opening.level and opening.map:
            level, (first, last) = int(opening.tag[1]), opening.map
            if level <= most_level:
                title, end = " ".join(inline.content.split()), min(edges[last], len(text))
                yield Heading(level, title, edges[first], end)


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks alone: what is in a paragraph does not matter here."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 20})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


class NamedCorpus(Protocol):
    """The corpus method that naming passages needs."""

    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...


_NAMES: WeakKeyDictionary[NamedCorpus, dict[str, Mapping[str, str]]] = WeakKeyDictionary()  # by document


def name_of(corpus: NamedCorpus, passage: Passage) -> str:
    """Return a passage's name: its document's title and the headings above it, with › between them.

    Several passages of one name are numbered. A passage that the corpus lacks is named by its title.
    """
    known = _NAMES.setdefault(corpus, {})
    if passage.doc_id not in known:
        if len(known) >= NAMED_DOCUMENTS:
            known.clear()
        try:
            known[passage.doc_id] = passage_names(*corpus.document(passage.doc_id))
        except BadInput:  # from outside the corpus
            known[passage.doc_id] = {}
    return known[passage.doc_id].get(passage.id, passage.title or passage.doc_id)


def passage_names(document: Document, passages: Sequence[Passage]) -> dict[str, str]:
    """Return the name of each passage of a document: its title and the headings above the passage."""
    title = document.title or document.id
    marked = document.id.lower().endswith(MARKED)
    waiting = list(headings(document.text)) if marked else []
    path: dict[int, str] = {}
    names: dict[str, str] = {}
    count = Counter[str]()
    for passage in passages:
        while waiting and waiting[0].start <= passage.start:
            heading = waiting.pop(0)
            path = {level: text for level, text in path.items() if level < heading.level}
            path[heading.level] = heading.text
        parts = [path[level] for level in sorted(path) if path[level]]
        name = " › ".join([title, *(parts[1:] if parts[:1] == [title] else parts)])
        count[name] += 1
        names[passage.id] = name if count[name] == 1 else f"{name} ({count[name]})"
    return names


def titled(text: str) -> tuple[str, str, dict[str, str]]:
    """Return a text's title, its body and the fields of its front matter.

    The title is that of the front matter, or else the first heading of level 1; a leading heading that became
    the title is not repeated in the body.
    """
    fields: dict[str, str] = {}
    if front := FRONT.match(text) or TOML_FRONT.match(text):
        if text.startswith("-"):
            fields = header(front[1])
        else:
            with suppress(tomllib.TOMLDecodeError, RecursionError):
                given = tomllib.loads(front[1]).items()
                fields = {name: str(value) for name, value in given if isinstance(value, str | int | date)}
        text = text[front.end() :].lstrip("\n")
    title = fields.pop("title", "")
    first = next((one for one in headings(text, 1) if one.text), None)
    if first is None:
        return title, text, fields
    body = text[first.end :].lstrip("\n")
    leads = not text[: first.start].strip() and title in ("", first.text)
    return title or first.text, body if leads and body.strip() else text, fields
