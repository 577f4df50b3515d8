"""The text and title columns of a file of rows, and their description."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.domain.settings import PROJECT

TEXT_COLUMNS = ("text", "content", "body")
NONE = ("none",)  # chosen: no rows are documents
SAMPLED = 200  # rows that are looked at
SHORT = 40  # characters of a value that identifies a row
WORDS, FEW = 8, 4  # a cell of prose has so many on average; fewer are enough under a name that means prose
_NAMES = tomllib.loads((PROJECT / "data" / "columns.toml").read_text(encoding="utf-8"))
QUESTIONS, ANSWERS, PROSE = (frozenset(_NAMES[one].split()) for one in ("questions", "answers", "prose"))
TITLES = tuple(_NAMES["titles"].split())
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts without spaces


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles of a file's columns."""

    columns: tuple[str, ...]
    text: tuple[str, ...]  # written as paragraphs
    title: str | None = None
    usual: bool = False  # it has a column of TEXT_COLUMNS: each row's first one counts, only "title" is one
    lines: tuple[str, ...] = ()  # written as lines `name: value` above the text, identifying ones first

    @property
    def rows(self) -> bool:
        """Return True if each row is a document; otherwise one document describes the table."""
        return bool(self.text or self.lines)

    def in_words(self) -> str:
        """Describe how the columns were taken."""
        if not self.rows:
            return (
                f"a table ({_listed(self.columns)}): one document describes it; with text columns chosen"
                " (--text-columns) its rows are documents"
            )
        shown = (*self.text, *self.lines)
        rest = [name for name in self.columns if name not in (*shown, self.title, "id", "_id")]
        said = "each row is a document"
        said += f", text: {_listed(self.text)}" if self.text else ""
        said += f"; title: {self.title}" if self.title in self.columns else ""
        said += f"; name: value lines: {_listed(self.lines)}" if self.lines else ""
        return said + (f"; metadata: {_listed(rest)}" if rest else "")


def plan(columns: Sequence[str], sample: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> Plan:
    """Decide what the columns of a file are: only those `chosen` (in small letters) if it has any of them.

    Without a choice every column is searched: prose, found by names and by the cells of some rows, as text,
    the others as lines. Rows of numbers alone are data, which one document describes.
    """
    names = tuple(dict.fromkeys(columns))
    small = {name.strip().lower(): name for name in reversed(names)}
    if picked := tuple(small[name] for name in chosen if name in small):
        return Plan(names, picked, _title(small, picked))
    if tuple(chosen) == NONE:
        return Plan(names, ())
    question = next((small[name] for name in small if name in QUESTIONS), None)
    answers = tuple(name for name in names if name.strip().lower() in ANSWERS)
    usual = [name for name in TEXT_COLUMNS if name in names]
    text: tuple[str, ...]
    title: str | None
    if usual:
        text, title = (usual[0],), "title"
    elif question is not None and answers:
        text, title = answers, question
    else:
        prose = tuple(name for name in names if _is_prose(name, sample))
        title = _title(small, ())
        text = tuple(name for name in prose if name != title) or prose
        title = _title(small, text) if text else None
    apart = (*text, title, *(("id", "_id") if usual else ()))
    nested = {name for name in names if any(isinstance(cell, dict) for cell in _cells((name,), sample))}
    lines = tuple(name for name in names if name not in apart and name not in nested)
    cells = _cells(lines, sample)
    if not text and not any(isinstance(cell, str) and any(map(str.isalpha, cell)) for cell in cells):
        return Plan(names, ())
    first = sorted(lines, key=lambda name: not _identifies(name, sample))
    return Plan(names, text, title, bool(usual), tuple(first))


def _cells(names: Sequence[str], sample: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [cell for row in sample for name in names if (cell := row.get(name)) not in (None, "")]


def _identifies(name: str, sample: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if each row has a short value of its own."""
    cells = [str(cell) for cell in _cells((name,), sample)]
    return len(cells) == len(sample) == len(set(cells)) and max(map(len, cells), default=0) <= SHORT


def _title(small: Mapping[str, str], text: Sequence[str]) -> str | None:
    return next((small[name] for name in TITLES if name in small and small[name] not in text), None)


def _is_prose(name: str, sample: Sequence[Mapping[str, Any]]) -> bool:
    cells = [cell for row in sample if isinstance(cell := row.get(name), str) and cell.strip()]
    if not cells:
        return False
    mean = sum(map(_words, cells)) / len(cells)
    return mean >= (FEW if name.strip().lower() in PROSE | ANSWERS else WORDS)


def _words(cell: str) -> float:
    """Count the words of a cell; in unspaced scripts two characters count as about one word."""
    cell = cell[:5_000]
    return len(cell.split()) + len(_UNSPACED.findall(cell)) / 2


def _listed(names: Sequence[str]) -> str:
    shown = [name[:40] for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
