"""Plain text for terminals: aligned, and without the control characters that hostile text may bring."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence

from core.domain.text import one_line

WIDTH = 110  # where stdout is no terminal


def cut(text: str, width: int) -> str:
    """`text` on one line of at most `width` columns."""
    text = one_line(text)
    if columns(text) <= width:
        return text
    while columns(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """Rows under headers, two spaces apart; those in `right` are flushed right, the last is cut to fit."""
    cells = [[one_line(str(cell)) for cell in row] for row in [headers, *rows]]
    widths = [max(columns(row[i]) for row in cells) for i in range(len(headers))]
    room = shutil.get_terminal_size((WIDTH, 24)).columns
    lines = []
    for row in cells:
        line = ""
        for i, cell in enumerate(row):
            last = i == len(row) - 1
            shown = cut(cell, max(12, room - columns(line))) if last else cell
            blank = " " * (widths[i] - columns(shown))
            line += blank + shown if i in right else shown + blank
            line += "" if last else "  "
        lines.append(line.rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths)[:room])
    return "\n".join(lines)


def amount(value: float | None, digits: int = 4) -> str:
    """Format a figure, or a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def columns(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
