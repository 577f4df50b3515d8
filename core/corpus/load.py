"""Reads documents from a BEIR folder, a folder of files, or one file."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from core.corpus import endings, files, rows, table_files
from core.corpus.folder import walk
from core.corpus.load_report import LoadReport
from core.corpus.types import Document, Reading
from core.domain.errors import BadInput, Unavailable

_READ = f"give a folder with corpus.jsonl (BEIR) or files ending in .sqlite, .db, {endings.IN_WORDS}"
SURVEYED = 50  # files of rows that are looked into
MAX_BYTES = 50_000_000  # of one document; a larger one is more likely a mistake than a text


def documents(
    path: Path, report: LoadReport | None = None, reading: Reading | None = None
) -> Iterator[Document]:
    """Every document below `path` in a repeatable order; what is left out or changed goes to `report`.

    A document's id is its path relative to `path`, or the id its row gives. Raises BadInput for a path that
    is not there, holds nothing readable, has a broken line or gives two documents one id.

    It reads here and now: what others may have written is read by `core.corpus.reading`.
    """
    report = report if report is not None else LoadReport()
    alone = Distinct(report)
    for file in readable_files(path, report):
        for document, where in documents_of(file, path, reading or Reading(), report):
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
            self._report.empty.add(where)
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


def readable_files(
    path: Path, report: LoadReport | None = None, read: Collection[str] = endings.READ
) -> list[Path]:
    """The files `documents` would read, sorted; raises BadInput when there are none.

    Hidden files and folders are left out, and so is a link that leads out of `path`. A database is read
    where there are no other documents: beside them it is asked, not searched. Source code beside one is
    not read. What is left out is told in `report`. `read`: the endings that count.
    """
    report = report if report is not None else LoadReport()
    try:
        if not path.exists():
            raise BadInput(f"{path}: no such file or folder")
        if is_beir(path):
            return [path / "corpus.jsonl"]
    except OSError as error:
        raise BadInput(f"cannot read {path}: {files.reason(error)}") from None
    if path.is_file():
        found = [path] if path.suffix.lower() in read else []
        stored = table_files.databases(path)
        if not found and not stored:
            why = "no SQLite database" if path.suffix.lower() in table_files.ENDINGS else ""
            raise BadInput(
                f"{path}: no readable document ({why or endings.unread(path.suffix.lower())}); {_READ}"
            )
    else:
        listing = walk(path, report)
        found = listing.having(tuple(read))
        stored = [file for file in listing.having(table_files.ENDINGS) if table_files.is_sqlite(file)]
        for ending, names in listing.files.items():
            if ending not in read and ending not in table_files.ENDINGS:
                _skip(report, map(Path, sorted(names)), path, endings.unread(ending))
        others = [file for file in listing.having(table_files.ENDINGS) if file not in set(stored)]
        _skip(report, others, path, "no SQLite database, whatever its name says")
    if stored:
        if path / table_files.QUESTIONS in found:
            report.skip(table_files.QUESTIONS, "labelled questions about the database, which eval asks")
        questions, code = path / table_files.QUESTIONS, set(endings.CODE)
        texts = [file for file in found if file != questions and file.suffix.lower() not in code]
        if texts:
            _skip(report, stored, path, "a database beside documents is asked by SQL routes, not searched")
            found = [file for file in found if file != questions]
        else:
            beside = [file for file in found if file != questions]
            _skip(report, beside, path, "source code beside a database is not read")
            found = stored
    if not found:
        left = report.skipped
        why = f" ({left[0].line()})" if left else ""
        raise BadInput(f"{path}: no readable document{why}; {_READ}")
    return found


def _skip(report: LoadReport, left: Iterable[Path], path: Path, why: str) -> None:
    for file in left:
        report.skip(name_of(file, path), why)


def survey(path: Path, reading: Reading, report: LoadReport) -> dict[str, int]:
    """How many files of each ending would be read, without reading more than the first rows of some.

    What would be left out for its name goes to `report`, and what the columns of files of rows would be taken
    as. Raises BadInput as `readable_files` does.
    """
    found = readable_files(path, report)
    if is_beir(path):
        return {found[0].name: 1}
    tables = [file for file in found if file.suffix.lower() in endings.ROWS]
    for file in tables[:SURVEYED]:
        name = name_of(file, path)
        try:
            for part in rows.opened(file, str(file)):
                plan = part.plan(reading)
                if not part.columns:
                    report.empty.add(name)
                    continue
                report.saw(part.columns)
                if not plan.text:
                    part.check_described(file)
                report.take(f"{name}/{part.sheet}" if part.sheet else name, plan.in_words())
        except rows.NotRead as error:
            report.skip(name, error.why)
        except (OSError, BadInput, Unavailable) as error:
            report.skip(name, files.reason(error))
    if len(tables) > SURVEYED:
        report.take(f"{len(tables) - SURVEYED:,} more files of rows", "not looked into yet")
    return dict(Counter(file.suffix.lower() for file in found).most_common())


def name_of(file: Path, path: Path) -> str:
    """What a file of the source `path` is called: its path below it, as text that UTF-8 can hold."""
    relative = file.relative_to(path if path.is_dir() else path.parent)
    return os.fsencode(relative.as_posix()).decode("utf-8", "replace")


def documents_of(
    file: Path, path: Path, reading: Reading, report: LoadReport
) -> Iterator[tuple[Document, str]]:
    """The documents of one of the source's readable files, each with where it was found.

    A file that cannot be read is left out, with the reason in `report`. Raises BadInput for a broken row:
    what a file of rows holds is read as a whole or not at all. So it does for a source of one file without
    text.
    """
    name, ending = name_of(file, path), file.suffix.lower()
    try:
        if is_beir(path):
            yield from rows.read_beir(file, report, MAX_BYTES)
        elif ending in table_files.ENDINGS:
            for document in table_files.documents(file, name, report):
                yield document, name
        elif ending in endings.ROWS:
            yield from rows.read(file, name, reading, report, MAX_BYTES)
        elif file.stat().st_size > MAX_BYTES:
            report.skip(name, f"larger than {MAX_BYTES // 1_000_000} MB, not read")
        else:
            for document in files.read(file, name, reading, report):
                yield document, name
    except rows.NotRead as error:
        if file == path:
            raise
        report.skip(name, error.why)
    except (OSError, Unavailable) as error:
        report.skip(name, files.reason(error))
