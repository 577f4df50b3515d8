"""Reads JSONL, CSV and judgement files; what is broken is named by file and line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from core.domain.errors import BadInput
from core.domain.jsonl import utf8_text

Qrels = dict[str, dict[str, int]]  # question id -> passage id -> grade


def read_qrels(path: Path) -> Qrels:
    """Judgements: BEIR's three tab-separated columns with a header, or TREC's four columns.

    Of two grades for one pair the higher holds. Raises BadInput with the file and the line.
    """
    if not path.is_file():
        raise BadInput(f"no relevance judgements: looked for {path} (TREC: question, 0, passage, grade)")
    qrels: Qrels = {}
    for number, line in enumerate(utf8_text(path).split("\n"), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and cells[-1].strip() in ("score", "relevance", "rel", "grade")):
            continue
        if len(cells) not in (3, 4) or not re.fullmatch(r"[+-]?\d+", cells[-1].strip()):
            raise BadInput(
                f"{path} line {number}: expected query-id, corpus-id, score between tabs; got {line[:60]!r}"
            )
        merge(qrels, {cells[0].strip(): {cells[-2].strip(): int(cells[-1])}})
    if not qrels:
        raise BadInput(f"{path} contains no judgements")
    return qrels


def merge(into: Qrels, more: Mapping[str, Mapping[str, int]]) -> None:
    """Add `more` to `into`; of two grades for one pair the higher holds."""
    for question, labels in more.items():
        mine = into.setdefault(question, {})
        for passage, grade in labels.items():
            mine[passage] = max(grade, mine.get(passage, grade))
