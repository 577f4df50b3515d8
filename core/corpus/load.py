"""Reads documents from a BEIR folder, a folder of files, or one file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from core.corpus import files, rows, table_files
from core.corpus.folder import walk
from core.corpus.types import Document, LoadReport
from core.domain.errors import BadInput

ENDINGS = tuple(sorted((*files.READERS, *rows.READERS)))
MAX_BYTES = 50_000_000  # of one document; a larger one is more likely a mistake than a text


def documents(path: Path, report: LoadReport | None = None) -> Iterator[Document]:
    """Every document below `path` in a repeatable order; what is left out or changed goes to `report`.

    A document's id is its path relative to `path`, or the id its row gives. Raises BadInput for a path that
    is not there, holds nothing readable, has a broken line or gives two documents one id.

    It reads here and now: what others may have written is read by `core.corpus.reading`.
    """
    report = report if report is not None else LoadReport()
    alone = Distinct(report)
    for file in readable_files(path, report):
        for document, where in documents_of(file, path, report):
            if alone.keeps(document, where):
                yield document


class Distinct:
    """Sees to it that no two documents of a corpus have one id; counts those of equal text."""

    def __init__(self, report: LoadReport) -> None:
        self._report = report
        self._seen: dict[str, str] = {}  # id -> where it was
        self._contents: set[bytes] = set()

    def keeps(self, document: Document, where: str) -> bool:
        """Whether the document is one of the corpus: one without any text is not. BadInput for a known id."""
        if not document.text.strip() and not document.title.strip():
            self._report.leave_out(where)
            return False
        if document.id in self._seen:
            raise BadInput(f"{where}: duplicate id {document.id!r}, first used at {self._seen[document.id]}")
        self._seen[document.id] = where
        digest = hashlib.blake2b(document.text.encode(), digest_size=16).digest()
        self._report.duplicates += digest in self._contents
        self._contents.add(digest)
        return True


def is_beir(path: Path) -> bool:
    """Whether `path` is a folder in BEIR's layout: one passage a line of corpus.jsonl."""
    return (path / "corpus.jsonl").is_file()


def readable_files(path: Path, report: LoadReport | None = None) -> list[Path]:
    """The files `documents` would read, sorted; raises BadInput when there are none.

    Hidden files and folders are left out, and so is a link that leads out of `path`. A database is read
    where there is nothing else: beside documents it is asked, not searched. A folder that cannot be looked
    into is told in `report`.
    """
    try:
        if not path.exists():
            raise BadInput(f"{path}: no such file or folder")
        if is_beir(path):
            return [path / "corpus.jsonl"]
    except OSError as error:
        raise BadInput(f"cannot read {path}: {files.reason(error)}") from None
    if path.is_file():
        found = [path] if path.suffix.lower() in ENDINGS else []
        stored = table_files.databases(path)
    else:
        listing = walk(path, report)
        found = listing.having(ENDINGS)
        stored = [file for file in listing.having(table_files.ENDINGS) if table_files.is_sqlite(file)]
    if stored:
        found = [file for file in found if file != path / table_files.QUESTIONS] or stored
    if not found:
        why = f" ({report.skipped[0]})" if report is not None and report.skipped else ""
        raise BadInput(
            f"{path}: no readable document{why}; give a folder with corpus.jsonl (BEIR)"
            f" or files ending in {', '.join((*ENDINGS, *table_files.ENDINGS))}"
        )
    return found


def name_of(file: Path, path: Path) -> str:
    """What a file of the source `path` is called: its path below it, as text that UTF-8 can hold."""
    relative = file.relative_to(path if path.is_dir() else path.parent)
    return os.fsencode(relative.as_posix()).decode("utf-8", "replace")


def documents_of(file: Path, path: Path, report: LoadReport) -> Iterator[tuple[Document, str]]:
    """The documents of one of the source's readable files, each with where it was found.

    A file of one document that cannot be read is left out, with the reason in `report`. Raises BadInput for
    a broken row: what a file of rows holds is read as a whole or not at all.
    """
    name, ending = name_of(file, path), file.suffix.lower()
    try:
        if is_beir(path):
            yield from rows.read_beir(file, report, MAX_BYTES)
        elif ending in table_files.ENDINGS or (ending == ".csv" and table_files.is_data(file)):
            for document in table_files.documents(file, name, report):
                yield document, name
        elif ending in rows.READERS:
            yield from rows.read(file, name, report, MAX_BYTES)
        elif file.stat().st_size > MAX_BYTES:
            report.skipped.append(f"{name}: larger than {MAX_BYTES // 1_000_000} MB, not read")
        else:
            for document in files.read(file, name, report):
                yield document, name
    except OSError as error:
        report.skipped.append(f"{name}: {files.reason(error)}")
