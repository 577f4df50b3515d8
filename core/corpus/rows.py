"""One document a row: BEIR's corpus.jsonl, other JSON lines, CSV, sheets of a workbook."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, TextIO

from core.corpus import columns, table_files
from core.corpus.columns import TEXT_COLUMNS, Plan
from core.corpus.files import REPLACED, flat, flattened, listed, told
from core.corpus.types import Document, FileRecord, LoadReport, Reading
from core.domain.encoding import encoding_of
from core.domain.errors import BadInput, Unavailable
from core.domain.parquet import parquet_rows
from core.domain.text import storable

ID_COLUMNS = ("_id", "id")
HUB = (".jsonl", ".parquet")  # endings of a dataset's corpus
MAX_UNPACKED, MAX_ROWS = 4 << 30, 20_000_000  # bytes and rows of a parquet file
LOOKED_AT = 20  # rows of a sheet, for the one that names the columns
LARGE_TABLE = 5_000_000  # bytes: the rows of a larger table without prose are described, not searched
EXAMPLES = 5  # values of a column in a sheet's document
LONGEST_LINE, LONGEST_HEADER = 50_000_000, 65_536  # characters of a line, and of that with the columns
_DELIMITER = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # Excel's first line
Placed = tuple[Document, str]  # a document and where it was found: "file:line"


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
    broken: list[tuple[int, str]] = field(default_factory=list)  # lines left out and why, found on the way

    def check_described(self, path: Path) -> None:
        """Raise BadInput for rows without text that are no table either: objects may have any fields."""
        if not self.sheet and path.suffix.lower() not in table_files.TABLES:
            shown = ", ".join(map(repr, self.columns)) or "none"
            how = f"give one of {', '.join(TEXT_COLUMNS)}, or name others with --text-columns"
            raise BadInput(f"no text column; {how} (found: {shown})")

    def plan(self, reading: Reading) -> Plan:
        """Return the roles of the columns."""
        return columns.plan(self.columns, [row.cells for row in self.sample], reading.text_columns)


def read_beir(path: Path, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """Yield BEIR documents of a file in `HUB`: `_id` (or `id`) and `text` must be there, `title` may; broken
    lines are left out.
    """
    broken: list[tuple[int, str]] = []
    usual = Plan(("text",), ("text",), "title", usual=True)
    packed = path.suffix == ".parquet"
    for row in _parquet(path) if packed else _json_lines(path, "utf-8-sig", broken):
        missing = [column for column in ("_id", "text") if column not in row.cells]
        if "_id" in missing and "id" in row.cells:
            missing.remove("_id")
        if missing:
            broken.append((row.line, f"no {missing[0]!r}; a BEIR line has _id, text and an optional title"))
            continue
        yield from _document(path.name, row, usual, report, max_bytes)
    _tell_broken(path.name, broken, report)


def _tell_broken(name: str, broken: Sequence[tuple[int, str]], report: LoadReport) -> None:
    for line, why in broken:
        report.skip(f"{name}:{line}", why)


def read(
    path: Path, name: str, reading: Reading, report: LoadReport, record: FileRecord, max_bytes: int
) -> Iterator[Placed]:
    """Yield the documents of a file of rows.

    A row without id gets `name#line`, in a workbook `name/sheet#line`.

    What its columns were taken as goes to `report`, and so does each row that is left out, with its line.
    Raises BadInput for a file without text.
    """

    def left_out(sheet: str, what: str, text: str) -> None:
        report.take(f"{name}/{sheet}", f"{what} left out")
        record.drop(what, text)

    for found in opened(path, left_out):
        called = f"{name}/{found.sheet}" if found.sheet else name
        report.saw(map(str, found.columns))
        told(name, found.encoding, report)
        plan = found.plan(reading)
        if not found.columns:
            _tell_broken(called, found.broken, report)
            report.empty.add(name)
            continue
        if found.above:
            report.take(called, f"{found.above} rows above the header left out")
        if not plan.text and path.stat().st_size > LARGE_TABLE:
            plan = replace(plan, lines=())
        if plan.rows:
            yield from _documents(found, called, plan, report, max_bytes)
            continue
        found.check_described(path)
        report.take(called, plan.in_words())
        if path.suffix.lower() in table_files.TABLES:
            try:
                described = list(table_files.csv_documents(path, name, report))
            except (BadInput, Unavailable) as error:
                raise BadInput(str(error).removeprefix(f"{path}: ")) from None
            yield from ((document, name) for document in described)
        else:
            yield Document(called, found.sheet, _described(found, name)), f"{path}:{found.sheet}"
            deque(found.rows, 0)  # reports what is hidden in them


def _documents(found: Rows, called: str, plan: Plan, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    count, damaged = 0, False
    for count, row in enumerate(found.rows, 1):  # noqa: B007 - the last one is reported
        if row.ragged:
            what = "a row with more or fewer cells than the header: joined, or filled up"
            report.take(f"{called}:{row.line}", what)
        for document, where in _document(called, row, plan, report, max_bytes):
            damaged = damaged or REPLACED in document.text
            yield document, where
    _tell_broken(called, found.broken, report)
    report.take(f"{called} ({count:,} {'row' if count == 1 else 'rows'})", plan.in_words())
    if damaged:
        report.replaced.add(called)


def _document(name: str, row: Row, plan: Plan, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """Yield a row's document; an invalid row is skipped with its line and the reason."""
    where, cells = f"{name}:{row.line}", row.cells
    try:
        used = plan.text
        if plan.usual:
            used = tuple(column for column in TEXT_COLUMNS if column in cells)[:1]
            if not used:
                there = ", ".join(map(repr, cells)) or "none"
                raise BadInput(f"no text column; give one of {', '.join(TEXT_COLUMNS)} (found: {there})")
            if not isinstance(cells[used[0]], str | list | dict):
                raise BadInput(f"{used[0]!r} is {_kind(cells[used[0]])}; give text")
        text, title = _text(cells, used, plan), cells.get(plan.title) if plan.title else None
        if title is not None and not isinstance(title, str):
            if plan.usual:
                raise BadInput(f"'title' is {_kind(title)}; give text")
            title = flat(title)
        if len(text) > max_bytes:
            raise BadInput(f"text longer than {max_bytes // 1_000_000} million characters, not read")
        given = next((cells[key] for key in ID_COLUMNS if cells.get(key) not in (None, "")), None)
        if given is not None and (isinstance(given, bool) or not isinstance(given, str | int)):
            raise BadInput(f"id is {_kind(given)}; give text or a whole number")
    except BadInput as error:
        report.skip(where, str(error))
        return
    apart = {*ID_COLUMNS, *used, *([plan.title] if plan.title else [])}
    meta = {storable(key): flat(value) for key, value in cells.items() if key not in apart and value}
    identity = f"{name}#{row.line}" if given is None else storable(str(given))
    yield Document(identity, storable(title or ""), storable(text), meta), where


def _text(cells: Mapping[str, Any], used: tuple[str, ...], plan: Plan) -> str:
    """Return the text of a row: lines `column: value`, then each text column, with a line for each value in a
    list or an object.
    """
    there = {column: value for column, value in cells.items() if value not in (None, "", [], {})}
    lines = "\n".join(f"{column}: {listed(there[column])}" for column in plan.lines if column in there)
    texts = [there[column] for column in used if column in there]
    parts = [one if isinstance(one, str) else "\n".join(flattened(one)) for one in texts]
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n\n".join(part for part in (lines, text) if part)


def opened(path: Path, left_out: Callable[[str, str, str], object] = lambda *_: None) -> Iterator[Rows]:
    """Yield a file of rows, or each visible sheet of a workbook that has cells. Raises BadInput."""
    ending = path.suffix.lower()
    if ending == ".xlsx":
        yield from _sheets(path, left_out)
        return
    if ending == ".parquet":
        yield _rows(None, _parquet(path))
        return
    with path.open("rb") as file:
        encoding = encoding_of(file)
    broken: list[tuple[int, str]] = []
    if ending in (".csv", ".tsv"):
        cells = _csv_cells(path, encoding, broken)
        _, first = next(cells, (0, []))
        header = _distinct(cell.strip().lower() for cell in first)
        yield _rows(header, _named(header, cells), encoding=encoding, broken=broken)
        return
    rows = _json_list(path, encoding) if is_list(path) else _json_lines(path, encoding, broken)
    yield _rows(None, _sessions(rows), encoding=encoding, broken=broken)


def _rows(header: tuple[str, ...] | None, rows: Iterator[Row], **more: Any) -> Rows:
    """Return rows with the first of them as a sample, which names the columns if no `header` does."""
    sample = list(islice(rows, columns.SAMPLED))
    named = tuple(dict.fromkeys(key for row in sample for key in row.cells)) if header is None else header
    return Rows(named, sample, chain(sample, rows), **more)


def is_list(path: Path) -> bool:
    """Return True if a JSON file is one list of objects."""
    with path.open("rb") as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"[") and head[1:].lstrip().startswith(b"{")


def _json_list(path: Path, encoding: str) -> Iterator[Row]:
    """Yield the objects of one list, numbered from 1."""
    if path.stat().st_size > LONGEST_LINE:
        raise BadInput(f"a list larger than {LONGEST_LINE // 1_000_000} MB; give one object a line")
    try:
        found = json.loads(path.read_text(encoding=encoding, errors="replace"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error}") from None
    yield from (Row(number, row) for number, row in enumerate(found, 1) if isinstance(row, dict))


def _sessions(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each chat session once that LongMemEval's questions list (arXiv:2410.10813), and other rows as
    they are.
    """
    seen: set[str] = set()
    for row in rows:
        if "haystack_sessions" not in row.cells:
            yield row
            continue
        listed = (row.cells.get(f"haystack_{name}") or () for name in ("session_ids", "sessions", "dates"))
        for id, session, date in zip_longest(*listed):
            if isinstance(id, str) and id not in seen and isinstance(session, list):
                seen.add(id)
                turns = [turn for turn in session if isinstance(turn, dict)]
                text = "\n\n".join(f"{turn.get('role')}: {turn.get('content')}" for turn in turns)
                yield Row(row.line, {"id": id, "text": text, "date": date})


def _json_lines(path: Path, encoding: str, broken: list[tuple[int, str]]) -> Iterator[Row]:
    """Yield the objects of JSON lines; other lines are added to `broken`."""
    with path.open(encoding=encoding, errors="replace", newline="\n") as file:
        for number, line in enumerate(_bounded(file, broken), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"{_kind(row)}; give a JSON object")
            except (ValueError, RecursionError) as error:
                broken.append((number, f"not valid JSON: {error}"))
                continue
            yield Row(number, row)


def _parquet(path: Path) -> Iterator[Row]:
    """Yield the rows of a parquet file, numbered from 1."""
    found = parquet_rows(path, path.name, most_bytes=MAX_UNPACKED, most_rows=MAX_ROWS)
    yield from (Row(number, cells) for number, cells in enumerate(found, 1))


def _bounded(file: TextIO, broken: list[tuple[int, str]]) -> Iterator[str]:
    """Yield lines, an empty one instead of each that is too long, which goes to `broken`."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            broken.append((number, f"a line longer than {LONGEST_LINE // 1_000_000} million characters"))
            while len(line) == LONGEST_LINE:
                line = file.readline(LONGEST_LINE)
            line = "\n"
        yield line


def _csv_cells(path: Path, encoding: str, broken: list[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        header = file.readline(LONGEST_HEADER)
        delimiter = max(",;\t|", key=header.count)
        if named := _DELIMITER.fullmatch(header):
            delimiter = named[1]
        else:
            file.seek(0)
        reader = csv.reader(_bounded(file, broken), delimiter=delimiter)
        try:
            yield from ((reader.line_num, cells) for cells in reader if cells)
        except csv.Error as error:
            raise BadInput(f"{path}:{reader.line_num}: not valid CSV: {error}") from None


def _named(header: tuple[str, ...], rows: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    """Rows by their columns: a missing cell is empty, and those beyond the header belong to the last one."""
    width = len(header)
    for line, cells in rows:
        ragged = len(cells) != width
        if len(cells) > width > 0:
            cells = [*cells[: width - 1], ", ".join(cell.strip() for cell in cells[width - 1 :])]
        yield Row(line, dict(zip(header, [*cells, *[""] * (width - len(cells))], strict=False)), ragged)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Append numbers to repeated column names, so that no cell is lost."""
    count = Counter[str]()
    found = []
    for name in names:
        count[name] += 1
        found.append(name if count[name] == 1 else f"{name} ({count[name]})")
    return tuple(found)


def _sheets(path: Path, left_out: Callable[[str, str, str], object]) -> Iterator[Rows]:
    from core.corpus.converted import sheets

    empty = True
    try:
        for title, cells in sheets(path, left_out):
            if (found := _sheet(title, cells)) is not None:
                empty = False
                yield found
    except BadInput as error:
        raise error if empty else BadInput(f"{path}: {error}") from None
    if empty:
        raise BadInput("its sheets are empty")


def _sheet(title: str, cells: Iterator[tuple[int, list[str]]]) -> Rows | None:
    """Read a sheet of a workbook; return None for an empty one."""
    rows = ((line, row) for line, row in cells if any(cell.strip() for cell in row))
    head = list(islice(rows, LOOKED_AT))
    if not head:
        return None
    # The first row with more than one used cell names the columns.
    wide = (n for n, (_, row) in enumerate(head) if sum(bool(cell.strip()) for cell in row) > 1)
    above = next(wide, 0)
    header = _fitted(head[above][1], 0)
    called = _distinct(cell.strip().lower() or f"column {n}" for n, cell in enumerate(header, 1))
    below = ((line, _fitted(row, len(called))) for line, row in chain(head[above + 1 :], rows))
    return _rows(called, _named(called, below), sheet=title, above=above)


def _fitted(row: list[str], width: int) -> list[str]:
    """Adjust the number of empty cells at the end of a sheet's row."""
    while len(row) > width and not row[-1].strip():
        row.pop()
    return [*row, *[""] * (width - len(row))]


def _described(found: Rows, name: str) -> str:
    """Describe a sheet without text: its columns with some values."""
    lines = [f"Table {found.sheet} of {name}."]
    for column in found.columns:
        values = dict.fromkeys(str(row.cells.get(column, ""))[:80] for row in found.sample)
        shown = [value for value in values if value.strip()][:EXAMPLES]
        lines.append(f"- {column}" + (f": {', '.join(shown)}" if shown else ""))
    return "\n".join(lines)


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
