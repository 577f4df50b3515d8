"""What a source gives: documents, before they are cut into passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """One document; passages are cut out of `text`, so their offsets count characters of it."""

    id: str
    title: str
    text: str
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LoadReport:
    """What a loader left out or changed; filled while the documents are read, shown with the corpus."""

    empty: int = 0
    duplicates: int = 0
    replaced: int = 0
    skipped: list[str] = field(default_factory=list)  # one line a file: its path and the reason

    def notes(self) -> tuple[str, ...]:
        """One line for each thing worth telling; none for a clean source."""
        counted = (
            (self.empty, "empty documents left out"),
            (self.duplicates, "documents repeat the text of another one and are kept"),
            (self.replaced, "documents hold U+FFFD: some of their characters did not decode"),
        )
        return tuple(f"{count} {what}" for count, what in counted if count) + tuple(self.skipped)
