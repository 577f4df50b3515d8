"""Reads documents from a BEIR folder, a folder of files, or one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from core.corpus import files, rows, tables
from core.corpus.types import Document, LoadReport
from core.errors import BadInput

ENDINGS = tuple(sorted((*files.READERS, *rows.READERS)))
MAX_BYTES = 50_000_000  # of one document; a larger one is more likely a mistake than a text


def documents(path: Path, report: LoadReport | None = None) -> Iterator[Document]:
    """Every document below `path` in a repeatable order; what is left out or changed goes to `report`.

    A document's id is its path relative to `path`, or the id its row gives. Raises BadInput for a path that
    is not there, holds nothing readable, has a broken line or gives two documents one id.
    """
    report = report if report is not None else LoadReport()
    seen: dict[str, str] = {}  # id -> where it was
    contents: set[bytes] = set()
    for document, where in _all(path, report):
        if not document.text.strip() and not document.title.strip():
            report.empty += 1
            continue
        if document.id in seen:
            raise BadInput(
                f"{where}: id {document.id!r} was already given at {seen[document.id]}; ids must differ"
            )
        seen[document.id] = where
        digest = hashlib.blake2b(document.text.encode(), digest_size=16).digest()
        report.duplicates += digest in contents
        contents.add(digest)
        yield document


def is_beir(path: Path) -> bool:
    """Whether `path` is a folder in BEIR's layout: one passage a line of corpus.jsonl."""
    return (path / "corpus.jsonl").is_file()


def readable_files(path: Path) -> list[Path]:
    """The files `documents` would read, sorted; raises BadInput when there are none.

    Hidden files and folders are left out, and so is a link that leads out of `path`. A database is read
    where there is nothing else: beside documents it is asked, not searched.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such file or folder")
    if is_beir(path):
        return [path / "corpus.jsonl"]
    if path.is_file():
        found = [path] if path.suffix.lower() in ENDINGS else []
    else:
        root = path.resolve()
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.suffix.lower() in ENDINGS
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
            and file.resolve().is_relative_to(root)
            and file.is_file()
        ]
    if stored := tables.databases(path):
        found = [file for file in found if file != path / tables.QUESTIONS] or stored
    if not found:
        raise BadInput(
            f"{path}: no readable document; give a folder with corpus.jsonl (BEIR)"
            f" or files ending in {', '.join((*ENDINGS, *tables.ENDINGS))}"
        )
    return found


def _all(path: Path, report: LoadReport) -> Iterator[tuple[Document, str]]:
    found = readable_files(path)
    root = path if path.is_dir() else path.parent
    if is_beir(path):
        yield from rows.read_beir(found[0], report, MAX_BYTES)
        return
    for file in found:
        name = file.relative_to(root).as_posix()
        ending = file.suffix.lower()
        if ending in tables.ENDINGS or (ending == ".csv" and tables.is_data(file)):
            for document in tables.documents(file, name, report):
                yield document, name
        elif ending in rows.READERS:
            yield from rows.read(file, name, report, MAX_BYTES)
        elif file.stat().st_size > MAX_BYTES:
            report.skipped.append(f"{name}: larger than {MAX_BYTES // 1_000_000} MB, not read")
        else:
            for document in files.read(file, name, report):
                yield document, name
