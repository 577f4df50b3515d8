"""Reads JSON lines and CSV; what is broken is named by file and line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.domain.encoding import decoded
from core.domain.errors import BadInput


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL or CSV file; the columns of CSV in small letters."""
    if not path.is_file():
        raise BadInput(f"no questions: {path} does not exist")
    if path.suffix.lower() == ".csv":
        text = _any_text(path)
        header = text.split("\n", 1)[0]
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count))
        try:
            for row in rows:
                if None in row:
                    raise BadInput(
                        f"{path} line {rows.line_num}: more cells than the header; put a cell that holds a"
                        " comma into quotes"
                    )
                yield rows.line_num, {str(key).strip().lower(): value for key, value in row.items()}
        except csv.Error as error:
            raise BadInput(f"{path} line {rows.line_num}: not valid CSV: {error}") from None
        return
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            item = parse(line, f"{path} line {number}")
            if not isinstance(item, dict):
                raise BadInput(f"{path} line {number}: expected a JSON object, not {type(item).__name__}")
            yield number, item


def objects(path: Path, *, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file, each with text (or, as an id, a number) under the keys `needed`."""
    for number, item in lines(path):
        for key in needed:
            if not isinstance(item.get(key), str | int):
                raise BadInput(f"{path} line {number}: no text under {key!r}; it has: {', '.join(item)}")
        yield item


def parse(text: str, where: str) -> Any:
    """JSON, or BadInput that says where it is not."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not valid JSON: {error}") from None


def _any_text(path: Path) -> str:
    """A file that spreadsheets write, in the encoding of where that was."""
    try:
        return decoded(path.read_bytes())[0].removeprefix("\ufeff")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from None
