"""Cells and lines of label files: how text is written so that it comes back, and what is read from them."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from reprlib import repr as short
from urllib.parse import quote

from core.domain.errors import BadInput
from core.evaluation.question_folder import whole_grade
from core.store.labels import GRADES

COLUMNS = (
    "question_id",
    "question",
    "passage_id",
    "doc_id",
    "title",
    "text",
    "start",
    "end",
    "annotator",
    "source",
    "kind",
    "grade",
    "note",
    "created",
)
LARGEST = 2**31 - 1  # characters of a CSV cell
_NEEDED = ("question_id", "passage_id")
_HEADS = ("score", "relevance", "rel", "grade")  # last columns of the first line of judgements with a header
# what a spreadsheet may run; behind an apostrophe it is text
_FORMULA = re.compile(r"'*[\s\x00-\x1f\ufeff]*[=+\-@＝＋－＠]")


def word(text: str) -> str:
    """Return `text` as one word: white space and the percent sign as percent-encoded UTF-8."""
    return "".join(quote(char, safe="") if char.isspace() or char in "%\ufeff" else char for char in text)


def shielded(cell: str) -> str:
    """`cell` as a spreadsheet takes it for text and not for a formula; `bare` is the opposite."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def bare(cell: str) -> str:
    """Undo `shielded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def decoded(content: bytes, file: str) -> str:
    """Return a file's text. Raises BadInput if it is not UTF-8."""
    try:
        return content.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 text (byte {error.start})") from None


def graded_lines(text: str, file: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield (where, question, passage, grade) of each line of TREC or BEIR judgements."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file} line {number}"
        parts = [part.strip() for part in line.split("\t")] if "\t" in line else line.split()
        if not line.strip() or (number == 1 and parts[-1] in _HEADS):
            continue
        if len(parts) not in (3, 4):
            raise BadInput(f"{where}: expected question, 0, passage, grade; got {short(line)}")
        given = grade(parts[-1], where)
        if given is None:
            raise BadInput(f"{where}: no grade; give {_allowed()}")
        yield where, parts[0], parts[-2], given


def table_lines(text: str, file: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(where, cells by column) of each line of a CSV file, as they were before they were shielded."""
    csv.field_size_limit(min(LARGEST, sys.maxsize))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [cell.strip() for cell in next(reader, [])]
        if lacking := [column for column in _NEEDED if column not in head]:
            raise BadInput(f"{file} line 1: no column {lacking[0]!r}; it has: {', '.join(head) or 'none'}")
        line = reader.line_num
        for row in reader:
            where, line = f"{file} line {line + 1}", reader.line_num
            if not row:
                continue
            if len(row) != len(head):
                raise BadInput(f"{where}: {len(row)} cells where the first line has {len(head)}")
            named = dict(zip(head, map(bare, row), strict=True))
            yield where, {column: named.get(column, "") for column in COLUMNS}
    except csv.Error as error:
        raise BadInput(f"{file} line {reader.line_num}: not CSV: {error}") from None


def is_own(content: bytes) -> bool:
    """Return whether a CSV file has the columns of `labels export`, or lacks the columns of other tools'
    question files.
    """
    head = content[:10_000].decode("utf-8", "replace").removeprefix("\ufeff").split("\n", 1)[0]
    cells = {cell.strip().strip('"').lower() for cell in re.split("[,;\t]", head)}
    asked = {"query", "question", "user_input", "input", "query text"}
    return bool(cells & {*_NEEDED, "annotator"}) or not cells & asked


def whole(cell: str, column: str, where: str) -> int:
    """Return a number of 0 or more, 0 for an empty cell."""
    if not re.fullmatch(r"[0-9]{0,15}", cell.strip()):
        raise BadInput(f"{where}: {column} {short(cell)}; give a whole number of 0 or more")
    return int(cell.strip() or 0)


def grade(cell: str, where: str) -> int | None:
    """Return a grade, or None for an empty cell."""
    said = cell.strip()
    if not said:
        return None
    if (found := whole_grade(said)) not in GRADES:
        raise BadInput(f"{where}: grade {short(said)}; give {_allowed()}")
    return found


def moment(cell: str, where: str) -> str:
    """Return a time in ISO 8601, or "" for an empty cell."""
    try:
        return cell and datetime.fromisoformat(cell).isoformat(timespec="milliseconds")
    except ValueError:
        raise BadInput(f"{where}: created {short(cell)}; give a time as 2026-01-31T12:00:00+00:00") from None


def _allowed() -> str:
    return ", ".join(map(str, sorted(GRADES)))
