"""Judgement files, and the files of a dataset's folder as Hugging Face's libraries write it: shards by split,
queries, qrels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from core.domain.errors import BadInput
from core.domain.hub import parts_of
from core.domain.jsonl import utf8_text
from core.evaluation.question_formats import texts
from core.evaluation.question_rows import ENDINGS, rows

_SPLIT = re.compile(r"(?:^|[-_/])(train|dev|validation|valid|test)(?:[-_./]|$)")
_SHARDS = tuple(ending for ending in ENDINGS if ending not in (".txt", ".xml", ".topics", ".yaml", ".yml"))
_ABOUT = ("dataset_info.json", "state.json", "dataset_dict.json", "dataset_infos.json", "config.json")
_PASSAGE = (("doc_id", "_id", "id"), ("contents", "text", "content"))  # of a corpus file
MAX_FILES = 1_000
_SAME = {"validation": "dev", "valid": "dev"}
_COLUMNS = (
    ("query-id", "query_id", "qid"),
    ("corpus-id", "corpus_id", "doc_id", "docid"),
    ("score", "relevance", "grade", "rating"),
)


def files_of(path: Path) -> list[tuple[Path, str]]:
    """Return the question files of `path` with their splits ("": not known): itself, or those of a folder."""
    if not path.is_dir():
        return [(path, "")]
    roles = _roles(path)
    wanted = "queries" if any(role == "queries" for role, _ in roles.values()) else ""
    kept = [(file, split) for file, (role, split) in roles.items() if role == wanted]
    if not kept:
        raise BadInput(f"{path}: no question file in this folder; looked for {', '.join(_SHARDS)}")
    return kept


def judgements(path: Path, split: str) -> Qrels:
    """Return the judgements of a dataset's folder for `split` ("all"); {} if it has none. If the split has
    none, those of all splits.
    """
    found: dict[str, Qrels] = {}
    for file, (role, part) in _roles(path).items() if path.is_dir() else ():
        if role != "qrels":
            continue
        own = found.setdefault(part, {})
        for where, row in rows(file):
            query, doc, score = (
                next((row[name] for name in names if row.get(name) is not None), None) for names in _COLUMNS
            )
            ids = [next(iter(texts(value)), "") for value in (query, doc)]
            grade = whole_grade(str(1 if score is None else score))
            if not all(ids) or grade is None or grade < 0:
                raise BadInput(f"{where}: expected query-id, corpus-id and a score of 0 or more")
            merge(own, {ids[0]: {ids[1]: grade}})
    whole: Qrels = {}
    for own in [found[split]] if split in found else found.values():
        merge(whole, own)
    return whole


def split_of(file: Path, root: Path) -> str:
    """Return the split that a file's path names, or "" for none."""
    found = _SPLIT.search(file.relative_to(root).as_posix().lower())
    return _SAME.get(found[1], found[1]) if found else ""


def _roles(root: Path) -> dict[Path, tuple[str, str]]:
    """Return the role and the split of each file, by the folder's README.md, else by the files' names."""
    named: dict[Path, tuple[str, str]] = {
        file: (part, _named(split)) for file, (part, split) in parts_of(root).items()
    }
    return named or {file: (_role(file, root), split_of(file, root)) for file in _shards(root)}


def _named(split: str) -> str:
    """Return a split as questions have it; "" for "queries" and the like, which are all there are."""
    found = _SPLIT.fullmatch(split)
    return _SAME.get(found[1], found[1]) if found else ""


def _role(file: Path, root: Path) -> str:
    """Return whether a file is the "queries", "corpus" or "qrels" of a retrieval dataset; "" for any
    other.
    """
    parts = re.split(r"[-_./]", file.relative_to(root).as_posix().lower())
    roles = {"query": "queries", "documents": "corpus"}
    named = (roles.get(part, part) for part in parts)
    return next((part for part in named if part in ("queries", "corpus", "qrels")), "")


def _shards(path: Path) -> list[Path]:
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SHARDS and file.name not in _ABOUT and file.is_file()
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if len(files) > MAX_FILES:
        raise BadInput(f"{path}: more than {MAX_FILES:,} files; give one of them")
    return files


def texts_beside(path: Path) -> dict[str, tuple[str, str]]:
    """Return the texts of the passages in a file `corpus` next to `path` (AutoRAG): id -> document, text."""
    files = [file for ending in _SHARDS if (file := path.with_name(f"corpus{ending}")).is_file()]
    found: dict[str, tuple[str, str]] = {}
    for _, row in rows(files[0]) if files and files[0] != path else ():
        id, text = (next((row[name] for name in names if row.get(name)), None) for names in _PASSAGE)
        if isinstance(text, str) and id is not None:
            found[str(id)] = (str(row.get("path") or row.get("title") or ""), text)
    return found


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
            raise BadInput(f"{path} line {number}: expected query-id, corpus-id, score; got {line[:60]!r}")
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
