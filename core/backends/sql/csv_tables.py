"""CSV files as typed tables of a database in memory."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.backends.sql.database import Database
from core.backends.sql.names import quoted
from core.domain.encoding import encoding_of
from core.domain.errors import BadInput

MAX_BYTES = 32_000_000  # of all files together: every query reads a copy in memory
MAX_COLUMNS = 200
MAX_CELL_CHARS = 100_000  # characters of one cell that are kept: below what a query may read
SAMPLE = 65_536
_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_MISSING = frozenset({"", "na", "n/a", "null", "none", "-"})


def load(files: Sequence[Path], name: str) -> tuple[Database, tuple[str, ...]]:
    """One table a file, and what was changed or left out, one line each.

    A column is INTEGER or REAL where each of its cells that is not missing is such a number, else TEXT;
    leading zeros are text, as codes have them. Formulas are text: nothing here computes them. Raises BadInput
    for files too large together and for one that holds no table.
    """
    size = sum(file.stat().st_size for file in files)
    if size > MAX_BYTES:
        raise BadInput(f"{name}: CSV files of {size:,} bytes; at most {MAX_BYTES:,} can be read as tables")
    notes: list[str] = []
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        taken: set[str] = set()
        for file in files:
            table = _distinct(identifier(file.stem, "table"), taken)
            notes += _fill(connection, table, file)
        return Database(connection.serialize(), name), tuple(notes)
    finally:
        connection.close()


def header(file: Path) -> tuple[str, ...]:
    """Return the cleaned column names of a CSV file. Raises BadInput if it has none."""
    rows = _rows(file, SAMPLE)  # pages ask for headers, and files may be large
    first = next(rows, None)
    if first is None or not any(cell.strip() for cell in first):
        raise BadInput(f"{file}: no header; the first line names the columns")
    if len(first) > MAX_COLUMNS:
        raise BadInput(f"{file}: {len(first)} columns; a table may have {MAX_COLUMNS}")
    taken: set[str] = set()
    return tuple(_distinct(identifier(cell, f"column_{n}"), taken) for n, cell in enumerate(first, 1))


def identifier(text: str, otherwise: str) -> str:
    """`text` as a name that SQL takes without quotes: lower case, words joined by "_"."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:60]
    if not name:
        return otherwise
    return f"_{name}" if name[0].isdigit() or name.startswith("sqlite") else name


def kind(cells: Sequence[str | None]) -> str:
    """Return the type that holds every cell: INTEGER, REAL or TEXT."""
    known = [cell for cell in cells if cell is not None]
    if known and all(_WHOLE.fullmatch(cell) for cell in known):
        return "INTEGER"
    return "REAL" if known and all(_NUMBER.fullmatch(cell) for cell in known) else "TEXT"


def _fill(connection: sqlite3.Connection, table: str, file: Path) -> list[str]:
    names = header(file)
    rows = _rows(file)
    next(rows)
    width, ragged, long = len(names), 0, 0
    columns: list[list[str | None]] = [[] for _ in names]
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        ragged += len(row) != width
        for column, cell in zip(columns, [*row, *[""] * width], strict=False):
            clean = cell.strip()
            long += len(clean) > MAX_CELL_CHARS
            column.append(None if clean.lower() in _MISSING else clean[:MAX_CELL_CHARS])
    kinds = [kind(column) for column in columns]
    defined = ", ".join(f"{quoted(name)} {what}" for name, what in zip(names, kinds, strict=True))
    connection.execute(f"CREATE TABLE {quoted(table)} ({defined})")
    marks = ", ".join("?" * width)
    connection.execute("BEGIN")  # each column has the affinity of its kind, so its texts become numbers
    connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", zip(*columns, strict=True))
    connection.execute("COMMIT")
    said = []
    if ragged:
        said.append(f"{file.name}: {ragged} rows have not the {width} cells of the header: cut, or filled up")
    if long:
        said.append(f"{file.name}: {long} cells cut at {MAX_CELL_CHARS} characters")
    return said


def _rows(file: Path, told_by: int = -1) -> Iterator[list[str]]:
    """Yield the rows of a file separated by comma, semicolon or tab. Its encoding is detected from its first
    bytes, or from all of it.
    """
    csv.field_size_limit(2**31 - 1)
    try:
        with file.open("rb") as raw:
            encoding = encoding_of(raw if told_by < 0 else io.BytesIO(raw.read(told_by)))
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    with file.open(encoding=encoding, errors="replace", newline="") as opened:
        first = opened.read(SAMPLE).split("\n", 1)[0]
        opened.seek(0)
        if first.strip().lower()[:-1] == "sep=":  # Excel's first line, which names the delimiter
            opened.readline()
            first = first.strip()[-1]
        try:
            yield from csv.reader(
                (line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in opened),
                delimiter=max(",;\t", key=first.count),
            )
        except csv.Error as error:
            raise BadInput(f"{file}: not CSV: {error}") from None


def _distinct(name: str, taken: set[str]) -> str:
    """Return `name`, with a number appended if it is taken, and mark it as taken."""
    number, chosen = 1, name
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    taken.add(chosen)
    return chosen
