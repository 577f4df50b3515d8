"""Realistic files for the readers, each with the words, rows and phrases a reader has to find."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "fixtures" / "realistic"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class RealisticFile:
    """A file with what its reading must and must not contain, as expected.toml says."""

    name: str
    phrases: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    hidden: Sequence[str] = ()
    unread_pages: Sequence[int] = ()
    skipped: bool = False

    @property
    def content(self) -> bytes:
        return (FOLDER / self.name).read_bytes()


def files() -> list[RealisticFile]:
    return [RealisticFile(name, **expected) for name, expected in EXPECTED.items()]


STORY: list[str] = EXPECTED["two-columns.pdf"]["phrases"][:8]
COUNCIL: list[str] = EXPECTED["two-columns.pdf"]["phrases"][8:]
