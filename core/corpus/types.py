"""The documents of a source before they are split into passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from core.domain.errors import BadInput

MOST_COLUMNS, LONGEST_COLUMN = 100, 200
HTML = ("all", "main")
PDF = ("oxide", "kreuzberg")
# Ways of reading that a source can be compared in, by the key in the names of their corpora.
READINGS: Mapping[str, Mapping[str, Any]] = {
    **{f"pdf-{name}": {"pdf": name} for name in PDF},
    **{f"html-{name}": {"html": name} for name in HTML},
    "ocr": {"ocr": True},
    "no-ocr": {"ocr": False},
}
KEPT_DROPPED = 20_000  # characters of a text that was left out


@dataclass(frozen=True, slots=True)
class Document:
    """One document; passages are cut out of `text`, so their offsets count characters of it."""

    id: str
    title: str
    text: str
    meta: Mapping[str, str] = field(default_factory=dict)


Span = tuple[int, int]  # of the characters of a document: [start, end)


@dataclass(frozen=True, slots=True)
class Cut:
    """A document with where its passages begin and end, and the milliseconds it took to read."""

    document: Document
    spans: Sequence[Span]
    read_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The way files become documents."""

    text_columns: tuple[str, ...] = ()  # in small letters, only these are text; empty: every column is
    html: str = "all"  # or "main": without navigation, header and footer of the page
    pdf: str = "oxide"  # the reader of PDF files, one of PDF
    ocr: bool = False  # read pages that hold only pictures by OCR

    def __post_init__(self) -> None:
        if self.pdf not in PDF:
            raise BadInput(f"PDF files are read by {' or '.join(PDF)}, not by {self.pdf!r}")
        if self.html not in HTML:
            raise BadInput(f"HTML is read as {' or '.join(HTML)}, not as {self.html!r}")
        if len(self.text_columns) > MOST_COLUMNS:
            raise BadInput(f"{len(self.text_columns)} text columns; at most {MOST_COLUMNS}")
        if any(len(column) > LONGEST_COLUMN or not column.strip() for column in self.text_columns):
            raise BadInput(f"a text column is named by 1 to {LONGEST_COLUMN} characters")


@dataclass(slots=True)
class FileRecord:
    """The record of reading one file."""

    file: str
    reader: str = "text"
    documents: int = 0
    characters: int = 0
    pages: int = 0  # 0: the kind of file has none
    tables: int = 0
    unread_pages: tuple[int, ...] = ()  # from 1: they hold only pictures
    ocr_pages: tuple[int, ...] = ()  # from 1: their text was read by OCR
    dropped: dict[str, str] = field(default_factory=dict)  # the beginning of what was left out, by reason
    skipped: str = ""  # why the file, or the rest of it, was not read
    ocr: bool = False  # whether OCR was asked for

    def drop(self, why: str, text: str) -> None:
        """Note a text that was left out."""
        before = self.dropped.get(why, "")
        if len(before) < KEPT_DROPPED:
            self.dropped[why] = f"{before}\n{text}".strip()[:KEPT_DROPPED]

    def line(self) -> str:
        """Return the record as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @property
    def coverage(self) -> float:
        """The share of the file that was read, from 0 to 1: of its pages, or of its characters."""
        if self.skipped and not self.documents:
            return 0.0
        if self.unread_pages:
            return 1 - len(self.unread_pages) / self.pages
        left = sum(map(len, self.dropped.values()))
        return self.characters / (self.characters + left) if left else 1.0


def columns(given: str) -> tuple[str, ...]:
    """Parse "question, answer" into distinct lower-case columns."""
    return tuple(dict.fromkeys(name for part in given.split(",") if (name := part.strip().lower())))


UNMEASURED = 1 / 3  # the best fixed weight of the cosine over 21 labelled sets


@dataclass(frozen=True, slots=True)
class DenseWeight:
    """The weight of a passage's cosine next to its BM25 score, which has 1 minus it, and what it rests on
    (see core.corpus.known_items).
    """

    weight: float
    low: float  # in 95% of 1,000 resamples of the items the best weight lies from `low` to `high`
    high: float
    items: int  # known-item questions asked
    found: tuple[tuple[float, float], ...] = ()  # each weight tried, and the mean nDCG@10 of the items
    why: str = ""  # why the weight is UNMEASURED; "" if it was measured

    def line(self) -> str:
        """Return the weight and what it rests on."""
        if self.why:
            return f"{self.weight:.2f}, not measured: {self.why}"
        return (
            f"{self.weight:.2f}, by {self.items} known-item questions"
            f" ({self.low:.2f} to {self.high:.2f} in 95% of resamples)"
        )
