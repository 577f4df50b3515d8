"""One document a row: BEIR's corpus.jsonl, other JSON lines, CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.corpus.files import REPLACED, storable
from core.corpus.types import Document, LoadReport
from core.domain.errors import BadInput

ID_COLUMNS = ("_id", "id")
TEXT_COLUMNS = ("text", "content", "body")
Row = tuple[int, Mapping[str, Any]]  # (line number from 1, columns)
Placed = tuple[Document, str]  # a document and where it was found: "file:line"


def read_beir(path: Path, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """BEIR documents: `_id` and `text` must be there, `title` may."""
    for line, row in _json_lines(path, str(path)):
        for column in ("_id", "text"):
            if column not in row:
                raise BadInput(
                    f"{path}:{line}: no {column!r}; a BEIR line has _id, text and an optional title"
                )
        yield from _document(path.name, str(path), line, row, "text", report, max_bytes)


def read(path: Path, name: str, report: LoadReport, max_bytes: int) -> Iterator[Placed]:
    """Documents of a .jsonl or .csv file; a row without id gets `name#line`."""
    for line, row in READERS[path.suffix.lower()](path, str(path)):
        column = next((column for column in TEXT_COLUMNS if column in row), None)
        if column is None:
            found = ", ".join(map(repr, row)) or "none"
            raise BadInput(
                f"{path}:{line}: no text column; give one of {', '.join(TEXT_COLUMNS)} (found: {found})"
            )
        yield from _document(name, str(path), line, row, column, report, max_bytes)


def _document(
    name: str, path: str, line: int, row: Mapping[str, Any], column: str, report: LoadReport, max_bytes: int
) -> Iterator[Placed]:
    where = f"{path}:{line}"
    text, title = row[column], row.get("title")
    if not isinstance(text, str):
        raise BadInput(f"{where}: {column!r} is {_kind(text)}; give text")
    if title is not None and not isinstance(title, str):
        raise BadInput(f"{where}: 'title' is {_kind(title)}; give text")
    if len(text) > max_bytes:
        report.skipped.append(
            f"{where}: text longer than {max_bytes // 1_000_000} million characters, not read"
        )
        return
    given = next((row[key] for key in ID_COLUMNS if row.get(key) not in (None, "")), None)
    if given is not None and (isinstance(given, bool) or not isinstance(given, str | int)):
        raise BadInput(f"{where}: id is {_kind(given)}; give text or a whole number")
    clean = storable(text)
    report.replaced += REPLACED in clean
    told = {*ID_COLUMNS, column, "title"}
    meta = {storable(key): _flat(value) for key, value in row.items() if key not in told and value}
    identity = f"{name}#{line}" if given is None else storable(str(given))
    yield Document(identity, storable(title or ""), clean, meta), where


def _json_lines(path: Path, name: str) -> Iterator[Row]:
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8", "replace")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"{name}:{number}: not valid JSON: {error}") from None
            if not isinstance(row, dict):
                raise BadInput(f"{name}:{number}: {_kind(row)}; give a JSON object")
            yield number, row


def _csv_rows(path: Path, name: str) -> Iterator[Row]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        sample = file.read(65_536)
        file.seek(0)
        reader = csv.DictReader(file, dialect=_dialect(sample))
        try:
            for row in reader:
                named = {key.strip().lower(): value for key, value in row.items() if isinstance(key, str)}
                if None in row or None in row.values():
                    columns = len(reader.fieldnames or ())
                    raise BadInput(
                        f"{name}:{reader.line_num}: the row does not have the {columns} columns of the header"
                    )
                yield reader.line_num, named
        except csv.Error as error:
            raise BadInput(f"{name}:{reader.line_num}: not valid CSV: {error}") from None


def _dialect(sample: str) -> type[csv.Dialect]:
    """Comma unless the header line has more semicolons or tabs; quoting as in RFC 4180."""
    header = sample.split("\n", 1)[0]

    class Found(csv.excel):
        delimiter = max(",;\t", key=header.count)

    return Found


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _flat(value: object) -> str:
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


READERS = {".jsonl": _json_lines, ".csv": _csv_rows}
