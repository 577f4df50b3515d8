"""The files that reading a source omitted, changed, or interpreted, in a bounded number of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from core.corpus.types import MOST_COLUMNS
from core.domain.errors import shortened

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
