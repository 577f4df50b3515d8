"""What a source gives: documents, before they are cut into passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.domain.errors import shortened

NAMED, TOLD = 10, 50  # empty documents that are named, and files left out that are told with the reason


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


@dataclass(slots=True)
class LoadReport:
    """What a loader left out or changed; filled while the documents are read, shown with the corpus.

    `textless`: the names of the first of the `empty` documents. `skipped`: one line a file, its path and the
    reason.
    """

    empty: int = 0
    duplicates: int = 0
    replaced: int = 0
    skipped: list[str] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)

    def leave_out(self, name: str) -> None:
        """Count a document without text."""
        self.empty += 1
        if len(self.textless) < NAMED:
            self.textless.append(name)

    def add(self, other: LoadReport) -> None:
        """Count what another one counted too."""
        self.empty += other.empty
        self.duplicates += other.duplicates
        self.replaced += other.replaced
        self.skipped += other.skipped
        self.textless = (self.textless + other.textless)[:NAMED]

    def notes(self) -> tuple[str, ...]:
        """One line for each thing worth telling, a bounded number; none for a clean source."""
        named = ", ".join(self.textless) + (", …" if self.empty > len(self.textless) else "")
        counted = (
            (self.empty, f"empty documents left out: {named}"),
            (self.duplicates, "documents repeat the text of another document and are indexed too"),
            (self.replaced, "documents contain U+FFFD: some of their characters did not decode"),
        )
        said = [f"{count} {what}" for count, what in counted if count]
        more = len(self.skipped) - TOLD
        also = [f"{more} more were left out"] if more > 0 else []
        return tuple(shortened(line) for line in (*said, *self.skipped[:TOLD], *also))
