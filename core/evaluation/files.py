"""Reads JSONL, CSV and judgement files; what is broken is named by file and line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from core.domain.errors import BadInput
from core.domain.jsonl import utf8_text

Qrels = dict[str, dict[str, int]]  # question id -> passage id -> grade
Conflicts = dict[tuple[str, str], set[int]]  # (question id, passage id) -> its several grades


def whole_grade(text: str) -> int | None:
    """Return a grade as judgement files write it, "1" or "1.0"; None if it is not a whole number."""
    return int(float(text)) if re.fullmatch(r"[+-]?\d{1,9}(\.0*)?", text.strip()) else None


def read_qrels(path: Path) -> tuple[Qrels, Conflicts]:
    """Read judgements: BEIR's three tab-separated columns with a header, or TREC's four columns.

    Of several grades for one pair the highest counts, and they are returned as a conflict. Raises BadInput
    with the file and the line.
    """
    if not path.is_file():
        raise BadInput(f"no relevance judgements: looked for {path} (TREC: question, 0, passage, grade)")
    qrels: Qrels = {}
    conflicts: Conflicts = {}
    for number, line in enumerate(utf8_text(path).split("\n"), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and cells[-1].strip() in ("score", "relevance", "rel", "grade")):
            continue
        if len(cells) not in (3, 4):
            raise BadInput(
                f"{path} line {number}: expected query-id, corpus-id, score between tabs; got {line[:60]!r}"
            )
        if (grade := whole_grade(cells[-1])) is None:
            raise BadInput(f"{path} line {number}: grade {cells[-1].strip()[:40]!r} is not a whole number")
        conflicts |= merge(qrels, {cells[0].strip(): {cells[-2].strip(): grade}}, conflicts)
    if not qrels:
        raise BadInput(f"{path} contains no judgements")
    return qrels, conflicts


def merge(into: Qrels, more: Mapping[str, Mapping[str, int]], before: Conflicts | None = None) -> Conflicts:
    """Add `more` to `into` and return the pairs with several grades, of which the highest counts.

    `before` has the conflicts known so far.
    """
    found: Conflicts = {}
    for question, labels in more.items():
        mine = into.setdefault(question, {})
        for passage, grade in labels.items():
            if (known := mine.get(passage, grade)) != grade:
                found[question, passage] = {known, grade} | (before or {}).get((question, passage), set())
            mine[passage] = max(grade, known)
    return found


def conflicts_said(conflicts: Conflicts) -> list[str]:
    """Name the pairs with several grades, in a sentence."""
    if not conflicts:
        return []
    (question, passage), grades = next(iter(conflicts.items()))
    return [
        f"{len(conflicts)} judgements have several grades, of which the highest counts, for example question "
        f"{question!r} and {passage!r}: {', '.join(map(str, sorted(grades)))}"
    ]


def unknown_said(qrels: Qrels, questions: Collection[str]) -> list[str]:
    """Name the judged questions that a set does not have, in a sentence."""
    unknown = [id for id in qrels if id not in questions]
    if not unknown:
        return []
    count = sum(len(qrels[id]) for id in unknown)
    return [
        f"{count} judgements of {len(unknown)} unknown questions are ignored, for example question "
        f"{unknown[0]!r}"
    ]
