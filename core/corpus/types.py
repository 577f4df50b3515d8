"""What a source gives: documents, before they are cut into passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.domain.errors import BadInput

MOST_COLUMNS, LONGEST_COLUMN = 100, 200
HTML = ("all", "main")


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
    """A document with where its passages begin and end; the milliseconds it took to read and to cut it."""

    document: Document
    spans: Sequence[Span]
    read_ms: float = 0.0
    cut_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How files become documents.

    `text_columns`: what is text in files of rows, in small letters; without them it is found by names and
    lengths. `html`: "all" text of a page, or "main": without its navigation, header and footer.
    """

    text_columns: tuple[str, ...] = ()
    html: str = "all"

    def __post_init__(self) -> None:
        if self.html not in HTML:
            raise BadInput(f"HTML is read as {' or '.join(HTML)}, not as {self.html!r}")
        if len(self.text_columns) > MOST_COLUMNS:
            raise BadInput(f"{len(self.text_columns)} text columns; at most {MOST_COLUMNS}")
        if any(len(column) > LONGEST_COLUMN or not column.strip() for column in self.text_columns):
            raise BadInput(f"a text column is named by 1 to {LONGEST_COLUMN} characters")


def columns(given: str) -> tuple[str, ...]:
    """The columns in "question, answer", in small letters, each once."""
    return tuple(dict.fromkeys(name for part in given.split(",") if (name := part.strip().lower())))
