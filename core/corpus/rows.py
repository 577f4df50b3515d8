"""One document a row: BEIR's corpus.jsonl, other JSON lines, CSV, sheets of a workbook."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from core.corpus import columns, table_files
from core.corpus.columns import TEXT_COLUMNS, Plan
from core.corpus.files import REPLACED, storable, told
from core.corpus.load_report import LoadReport
from core.corpus.types import Document, Reading
from core.domain.encoding import encoding_of
from core.domain.errors import BadInput, Unavailable

ID_COLUMNS = ("_id", "id")
LOOKED_AT = 20  # rows of a sheet, for the one that names the columns
EXAMPLES = 5  # values of a column in a sheet's document
Placed = tuple[Document, str]  # a document and where it was found: "file:line"


class NotRead(BadInput):
    """A file of rows that gives no documents, told before the first one of them; `why` without its name."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Row:
    """A row by its columns; `ragged`: it had not the cells of the header."""

    line: int  # from 1
    cells: Mapping[str, Any]
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """A file of rows, or one sheet of it. `sample` are the first of its `rows`, `line` that of its header."""

    columns: tuple[str, ...]
    sample: list[Row]
    rows: Iterator[Row]
    sheet: str = ""
    above: int = 0  # rows left out above the header of a sheet
    encoding: str = "utf-8"

    def check_described(self, path: Path) -> None:
        """Raise NotRead for rows without text that are no table either: objects may have any fields."""
        if self.sheet or path.suffix.lower() in table_files.TABLES:
            return
        shown = ", ".join(map(repr, self.columns)) or "none"
        raise NotRead(
            f"{path}:{self.sample[0].line if self.sample else 1}",
            f"no text column; give one of {', '.join(TEXT_COLUMNS)}, or name others with --text-columns"
            f" (found: {shown})",
        )

    def plan(self, reading: Reading) -> Plan:
        """What its columns are."""
        return columns.plan(self.columns, [row.cells for row in self.sample], reading.text_columns)


@dataclass(slots=True)
class _Told:
    """What is counted while the rows of a file are read."""

    rows: int = 0
    ragged: int = 0
    damaged: bool = field(default=False)


def read_beir(path: Path, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """BEIR documents: `_id` and `text` must be there, `title` may."""
    for row in _json_lines(path, str(path), "utf-8-sig"):
        for column in ("_id", "text"):
            if column not in row.cells:
                raise BadInput(
                    f"{path}:{row.line}: no {column!r}; a BEIR line has _id, text and an optional title"
                )
        usual = Plan(("text",), ("text",), "title", usual=True)
        yield from _document(path.name, str(path), row, usual, report, max_bytes, lambda: None)


def read(path: Path, name: str, reading: Reading, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """Documents of a file of rows; a row without id gets `name#line`, in a workbook `name/sheet#line`.

    What its columns were taken as goes to `report`. Raises NotRead for a file without text, and BadInput for
    a broken row.
    """
    for found in opened(path, str(path)):
        called = f"{name}/{found.sheet}" if found.sheet else name
        report.saw(map(str, found.columns))
        told(name, found.encoding, report)
        plan = found.plan(reading)
        if not found.columns:
            report.empty.add(name)
            continue
        if found.above:
            report.take(called, f"{found.above} rows above the header left out")
        if not plan.text:
            if path.suffix.lower() in table_files.TABLES:
                try:
                    table = list(table_files.csv_documents(path, name, report))
                except (BadInput, Unavailable) as error:
                    raise NotRead(str(path), str(error).removeprefix(f"{path}: ")) from None
                report.take(name, plan.in_words())
                yield from ((document, name) for document in table)
                return
            found.check_described(path)
            report.take(called, plan.in_words())
            yield Document(called, found.sheet, _described(found, name)), f"{path}:{found.sheet}"
            continue
        yield from _documents(found, called, str(path), plan, report, max_bytes)


def _documents(
    found: Rows, called: str, path: str, plan: Plan, report: LoadReport, max_bytes: int
) -> Iterator[Placed]:
    count = _Told()
    where = f"{path}/{found.sheet}" if found.sheet else path

    def damaged() -> None:
        count.damaged = True

    for row in found.rows:
        count.rows += 1
        count.ragged += row.ragged
        if row.ragged and plan.usual:
            raise BadInput(
                f"{where}:{row.line}: the row does not have the {len(found.columns)} columns of the header"
            )
        yield from _document(called, where, row, plan, report, max_bytes, damaged)
    report.take(f"{called} ({count.rows:,} {'row' if count.rows == 1 else 'rows'})", plan.in_words())
    if count.ragged:
        wrong = "rows have not the cells of the header: joined, or filled up"
        report.take(called, f"{count.ragged} {wrong}")
    if count.damaged:
        report.replaced.add(called)


def _document(
    name: str,
    path: str,
    row: Row,
    plan: Plan,
    report: LoadReport,
    max_bytes: int,
    damaged: Callable[[], None],
) -> Iterator[Placed]:
    where, cells = f"{path}:{row.line}", row.cells
    used = _used(cells, plan, where)
    text, title = _text(cells, used, plan, where), cells.get(plan.title) if plan.title else None
    if title is not None and not isinstance(title, str):
        if plan.usual:
            raise BadInput(f"{where}: 'title' is {_kind(title)}; give text")
        title = _flat(title)
    if len(text) > max_bytes:
        report.skip(where, f"text longer than {max_bytes // 1_000_000} million characters, not read")
        return
    given = next((cells[key] for key in ID_COLUMNS if cells.get(key) not in (None, "")), None)
    if given is not None and (isinstance(given, bool) or not isinstance(given, str | int)):
        raise BadInput(f"{where}: id is {_kind(given)}; give text or a whole number")
    clean = storable(text)
    if REPLACED in clean:
        damaged()
    apart = {*ID_COLUMNS, *used, *([plan.title] if plan.title else [])}
    meta = {storable(key): _flat(value) for key, value in cells.items() if key not in apart and value}
    identity = f"{name}#{row.line}" if given is None else storable(str(given))
    yield Document(identity, storable(title or ""), clean, meta), where


def _used(cells: Mapping[str, Any], plan: Plan, where: str) -> tuple[str, ...]:
    """The columns of a row that are its text."""
    if not plan.usual:
        return plan.text
    column = next((column for column in TEXT_COLUMNS if column in cells), None)
    if column is None:
        found = ", ".join(map(repr, cells)) or "none"
        raise BadInput(f"{where}: no text column; give one of {', '.join(TEXT_COLUMNS)} (found: {found})")
    return (column,)


def _text(cells: Mapping[str, Any], used: tuple[str, ...], plan: Plan, where: str) -> str:
    if plan.usual:
        text = cells[used[0]]
        if not isinstance(text, str):
            raise BadInput(f"{where}: {used[0]!r} is {_kind(text)}; give text")
        return text
    parts = [_lines(value) for column in used if (value := cells.get(column)) not in (None, "", [], {})]
    return "\n\n".join(part for part in parts if part.strip())


def _lines(value: object) -> str:
    """A field as text: a list a line each."""
    if isinstance(value, list):
        return "\n".join(map(_lines, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def opened(path: Path, name: str) -> Iterator[Rows]:
    """A file of rows, and each sheet of a workbook that has cells; raises NotRead for what is none."""
    ending = path.suffix.lower()
    if ending == ".xlsx":
        yield from _sheets(path, name)
        return
    try:
        with path.open("rb") as file:
            encoding = encoding_of(file)
    except BadInput as error:
        raise NotRead(name, str(error)) from None
    if ending in (".csv", ".tsv"):
        yield _csv_rows(path, name, encoding)
        return
    rows = _json_lines(path, name, encoding)
    sample = list(islice(rows, columns.SAMPLED))
    named = dict.fromkeys(key for row in sample for key in row.cells)
    yield Rows(tuple(named), sample, chain(sample, rows), encoding=encoding)


def _json_lines(path: Path, name: str, encoding: str) -> Iterator[Row]:
    with path.open(encoding=encoding, errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"{name}:{number}: not valid JSON: {error}") from None
            if not isinstance(row, dict):
                raise BadInput(f"{name}:{number}: {_kind(row)}; give a JSON object")
            yield Row(number, row)


def _csv_rows(path: Path, name: str, encoding: str) -> Rows:
    rows = _csv_cells(path, name, encoding)
    _, first = next(rows, (0, []))
    header = tuple(cell.strip().lower() for cell in first)
    named = _named(header, rows)
    sample = list(islice(named, columns.SAMPLED))
    return Rows(header, sample, chain(sample, named), encoding=encoding)


def _csv_cells(path: Path, name: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        sample = file.read(65_536)
        file.seek(0)
        reader = csv.reader(file, dialect=_dialect(sample))
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise BadInput(f"{name}:{reader.line_num}: not valid CSV: {error}") from None


def _named(header: tuple[str, ...], rows: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    """Rows by their columns: a missing cell is empty, and those beyond the header belong to the last one."""
    width = len(header)
    for line, cells in rows:
        ragged = len(cells) != width
        if len(cells) > width > 0:
            cells = [*cells[: width - 1], ", ".join(cell.strip() for cell in cells[width - 1 :])]
        yield Row(line, dict(zip(header, [*cells, *[""] * (width - len(cells))], strict=False)), ragged)


def _dialect(sample: str) -> type[csv.Dialect]:
    """Comma unless the header line has more semicolons or tabs; quoting as in RFC 4180."""
    header = sample.split("\n", 1)[0]

    class Found(csv.excel):
        delimiter = max(",;\t", key=header.count)

    return Found


def _sheets(path: Path, name: str) -> Iterator[Rows]:
    from core.corpus.converted import sheets

    found = None
    try:
        for title, cells in sheets(path):
            found = _sheet(title, cells) or found
            if found is not None and found.sheet == title:
                yield found
    except BadInput as error:
        if found is None:
            raise NotRead(name, str(error)) from None
        raise BadInput(f"{name}: {error}") from None
    if found is None:
        raise NotRead(name, "its sheets are empty")


def _sheet(title: str, cells: Iterator[tuple[int, list[str]]]) -> Rows | None:
    """A sheet of a workbook; None for an empty one."""
    rows = ((line, row) for line, row in cells if any(cell.strip() for cell in row))
    head = list(islice(rows, LOOKED_AT))
    if not head:
        return None
    above = _header(head)
    header = _fitted(head[above][1], 0)
    called = tuple(cell.strip().lower() or f"column {n}" for n, cell in enumerate(header, 1))
    below = chain(head[above + 1 :], rows)
    named = _named(called, ((line, _fitted(row, len(called))) for line, row in below))
    sample = list(islice(named, columns.SAMPLED))
    return Rows(called, sample, chain(sample, named), title, above)


def _header(rows: list[tuple[int, list[str]]]) -> int:
    """Which of the first rows names the columns: the first one with more than one cell in use."""
    wide = (n for n, (_, row) in enumerate(rows) if sum(bool(cell.strip()) for cell in row) > 1)
    return next(wide, 0)


def _fitted(row: list[str], width: int) -> list[str]:
    """A row of a sheet, whose empty cells at the end may be there or not."""
    while len(row) > width and not row[-1].strip():
        row.pop()
    return [*row, *[""] * (width - len(row))]


def _described(found: Rows, name: str) -> str:
    """A sheet without text: its columns with some values."""
    lines = [f"Table {found.sheet} of {name}."]
    for column in found.columns:
        values = dict.fromkeys(str(row.cells.get(column, ""))[:80] for row in found.sample)
        shown = [value for value in values if value.strip()][:EXAMPLES]
        lines.append(f"- {column}" + (f": {', '.join(shown)}" if shown else ""))
    return "\n".join(lines)


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _flat(value: object) -> str:
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
