"""The documents of a source before they are split into passages, and the report of reading them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from core.backends import reading_limits
from core.domain.errors import BadInput, shortened

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
BROKEN_LINE = "\ue0ad"  # private use: a hyphen at a line end, before it is decided whether it stays
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


SHOWN, NAMED, TOLD = 10, 1_000, 50  # files shown at a time and remembered by reason, and reasons


@dataclass(frozen=True, slots=True)
class Skipped:
    """Files that were left out for one reason: how many, and the names of the first of them."""

    reason: str
    count: int
    names: tuple[str, ...]

    def line(self) -> str:
        """Format the skipped files in one line."""
        return shortened(f"{named(self.names, self.count)}: {self.reason}")


def named(names: Sequence[str], count: int) -> str:
    """Format the known names of `count` files."""
    shown = names[:SHOWN]
    return ", ".join(shown) + (f" and {count - len(shown):,} more" if count > len(shown) else "")


@dataclass(slots=True)
class Counted:
    """A count with the names of the first items."""

    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """One more."""
        self.join(Counted(1, [name]))

    def join(self, other: Counted) -> None:
        """Those that another one counted too."""
        self.count += other.count
        self.names += other.names[: NAMED - len(self.names)]


def _join(known: dict[str, Counted], what: str, counted: Counted) -> bool:
    """Count something; return False if there are too many other things."""
    if what not in known and len(known) >= TOLD:
        return False
    known.setdefault(what, Counted()).join(counted)
    return True


@dataclass(slots=True)
class LoadReport:
    """A report of a loader, filled while the documents are read, shown with the corpus."""

    duplicates: int = 0
    more: int = 0  # number of files not listed because there are too many reasons
    empty: Counted = field(default_factory=Counted)  # documents without text
    replaced: Counted = field(default_factory=Counted)  # documents with undecodable characters
    left: dict[str, Counted] = field(default_factory=dict)  # omitted files by reason
    kinds: dict[str, Counted] = field(default_factory=dict)  # files by a surprising interpretation
    columns: dict[str, None] = field(default_factory=dict)  # columns of files of rows

    def skip(self, name: str, reason: str) -> None:
        """Record an omitted file; `name` may be a place in it."""
        self._join_left(reason, Counted(1, [name]))

    def take(self, name: str, kind: str) -> None:
        """Record a file with a surprising interpretation."""
        _join(self.kinds, kind, Counted(1, [name]))

    def _join_left(self, reason: str, counted: Counted) -> None:
        if not _join(self.left, reason, counted):
            self.more += counted.count

    def saw(self, columns: Iterable[str]) -> None:
        """Record the columns of a file of rows."""
        for column in columns:
            if len(self.columns) < MOST_COLUMNS:
                self.columns.setdefault(column)

    def add(self, other: LoadReport) -> None:
        """Count what another one counted too."""
        self.duplicates += other.duplicates
        self.more += other.more
        self.empty.join(other.empty)
        self.replaced.join(other.replaced)
        for reason, counted in other.left.items():
            self._join_left(reason, counted)
        for kind, counted in other.kinds.items():
            _join(self.kinds, kind, counted)
        self.saw(other.columns)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The files left out, by reason."""
        return tuple(Skipped(why, one.count, tuple(one.names)) for why, one in self.left.items())

    def notes(self) -> tuple[str, ...]:
        """One line for each thing worth telling, a bounded number; none for a clean source."""
        empty, replaced = self.empty, self.replaced
        counted = (
            (empty.count, f"empty documents left out: {named(empty.names, empty.count)}"),
            (self.duplicates, "documents repeat the text of another document and are indexed too"),
            (
                replaced.count,
                "documents contain U+FFFD, some of their characters did not decode: "
                + named(replaced.names, replaced.count),
            ),
        )
        said = [f"{count} {what}" for count, what in counted if count]
        taken = [f"{named(one.names, one.count)}: {kind}" for kind, one in self.kinds.items()]
        also = [f"{self.more} more were left out"] if self.more else []
        left = [one.line() for one in self.skipped]
        return tuple(shortened(line) for line in (*said, *taken, *left, *also))


BLOCK = 256  # texts whose tokens are counted at a time
WORTH = 0.005  # of the text, from which unread text is warned of


@dataclass(frozen=True, slots=True)
class Unread:
    """Counts of tokens as the embedder cuts them."""

    limit: int  # tokens of a passage that are read
    tokens: int  # of all passages
    unread: int  # of these tokens, those behind the limit of their passage
    passages: int  # that are longer than the limit
    characters: int  # of all passages

    @property
    def share(self) -> float:
        """The part of the tokens that is not read, 0 to 1."""
        return self.unread / self.tokens if self.tokens else 0.0


def count_unread(texts: Iterable[str], model: str, tick: Callable[[int, int], None]) -> Unread | None:
    """Count what a model leaves unread of texts; None if its tokenizer is not on this machine."""
    limit = reading_limits.limit(model)
    if limit is None:
        return None
    total = unread = long = characters = number = 0
    left = iter(texts)
    while some := list(islice(left, BLOCK)):
        number += len(some)
        tick(number, 0)
        counts = limit.count(some)
        over = [one - limit.tokens for one in counts if one > limit.tokens]
        total, unread, long = total + sum(counts), unread + sum(over), long + len(over)
        characters += sum(map(len, some))
    return Unread(limit.tokens, total, unread, long, characters)


def unread_notes(found: Unread | None, model: str) -> list[str]:
    """Say how much of an enrichment's texts a model does not read; nothing if that is next to nothing."""
    if found is None or found.share < WORTH:
        return []
    return [
        f"{found.share:.1%} of the text is not read by {model}: {found.passages:,} texts are longer than its"
        f" {found.limit:,} tokens; smaller passages (--chunk-size) or a model that reads more change that"
    ]
