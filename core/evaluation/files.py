"""Reads JSONL, CSV and judgement files; what is broken is named by file and line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.domain.errors import BadInput

Qrels = dict[str, dict[str, int]]  # question id -> passage id -> grade


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL or CSV file."""
    if not path.is_file():
        raise BadInput(f"no questions: looked for {path}")
    if path.suffix == ".csv":
        rows = csv.DictReader(io.StringIO(_text(path), newline=""))
        try:
            for row in rows:
                yield rows.line_num, {str(key): value for key, value in row.items()}
        except csv.Error as error:
            raise BadInput(f"{path} line {rows.line_num}: not CSV: {error}") from None
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
        raise BadInput(f"{where}: not JSON: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from None


def read_qrels(path: Path) -> Qrels:
    """Judgements: BEIR's three tab-separated columns with a header, or TREC's four columns.

    Of two grades for one pair the higher holds. Raises BadInput with the file and the line.
    """
    if not path.is_file():
        raise BadInput(f"no relevance judgements: looked for {path} (TREC: question, 0, passage, grade)")
    qrels: Qrels = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and cells[-1].strip() in ("score", "relevance", "rel", "grade")):
            continue
        if len(cells) not in (3, 4) or not re.fullmatch(r"[+-]?\d+", cells[-1].strip()):
            raise BadInput(
                f"{path} line {number}: expected query-id, corpus-id, score between tabs; got {line[:60]!r}"
            )
        merge(qrels, {cells[0].strip(): {cells[-2].strip(): int(cells[-1])}})
    if not qrels:
        raise BadInput(f"{path}: no judgement in it")
    return qrels


def merge(into: Qrels, more: Mapping[str, Mapping[str, int]]) -> None:
    """Add `more` to `into`; of two grades for one pair the higher holds."""
    for question, labels in more.items():
        mine = into.setdefault(question, {})
        for passage, grade in labels.items():
            mine[passage] = max(grade, mine.get(passage, grade))
