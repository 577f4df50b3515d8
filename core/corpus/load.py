"""Reads documents from a BEIR folder, a folder of files, or one file."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from core.corpus import endings, files, rows, table_files, tool_lists
from core.corpus.converted import TRAPPED, is_trap, unpackable
from core.corpus.folder import walk
from core.corpus.types import Document, FileRecord, LoadReport, Reading
from core.domain.errors import BadInput, Unavailable
from core.domain.hub import parts_of
from core.domain.text import composed

_READ = f"give a folder with corpus.jsonl (BEIR) or files ending in .sqlite, .db, {endings.IN_WORDS}"
SURVEYED = 50  # files of rows that are looked into
MAX_BYTES = 50_000_000  # of one document; a larger one is more likely a mistake than a text


class Distinct:
    """Gives every document of a corpus an id of its own; counts those of equal text."""

    def __init__(self, report: LoadReport) -> None:
        self._report = report
        self._seen: set[str] = set()
        self._contents: set[bytes] = set()

    def kept(self, document: Document, where: str) -> Document | None:
        """Return the document with its id; None if it has no text.

        Ids are unique per file: one that an earlier file used is written `file#id`, and one that occurs twice
        in a file gets the number of its line.
        """
        if not document.text.strip() and not document.title.strip():
            self._report.empty.add(where)
            return None
        file, _, line = where.rpartition(":") if where.rpartition(":")[2].isdigit() else (where, "", "")
        own = document.id
        ids = (own, f"{file}#{own}", f"{file}#{own}:{line}")
        id = next((id for id in ids if id not in self._seen), None)
        if id is None:
            self._report.skip(where, f"its id {own[:80]!r} is used twice")
            return None
        if id != own:
            self._report.take(file, "ids that other rows have, too, are written with the file's name")
            document = replace(document, id=id)
        self._seen.add(id)
        digest = hashlib.blake2b(document.text.encode(), digest_size=16).digest()
        self._report.duplicates += digest in self._contents
        self._contents.add(digest)
        return document


def is_beir(path: Path) -> bool:
    """Return True if `path` is a folder whose documents are rows of `_corpus_files`."""
    return bool(_corpus_files(path))


def _corpus_files(path: Path) -> list[Path]:
    """Return BEIR's corpus.jsonl, or the files of a Hugging Face dataset's corpus; [] for another folder."""
    if (path / "corpus.jsonl").is_file():
        return [path / "corpus.jsonl"]
    named = parts_of(path).items() if path.is_dir() else ()
    return sorted(file for file, (part, _) in named if part == "corpus" and file.suffix in rows.HUB)


def readable_files(
    path: Path, report: LoadReport | None = None, read: Collection[str] = endings.READ
) -> list[Path]:
    """Return the files that `documents` would read, sorted. Raises BadInput if there are none.

    Hidden files and folders, and links that lead out of `path`, are omitted. A database is read only if there
    are no other documents: otherwise it is queried, not searched. Source code next to a database is not read.
    Omitted files are added to `report`. `read`: the endings that count.
    """
    report = report if report is not None else LoadReport()
    try:
        if not path.exists():
            raise BadInput(f"{path}: no such file or folder")
        if found := _corpus_files(path):
            return found
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
        questions, code = path / table_files.QUESTIONS, set(endings.CODE)
        if questions in found:
            report.skip(table_files.QUESTIONS, "labelled questions about the database, which eval asks")
            found.remove(questions)
        if all(file.suffix.lower() in code for file in found):
            _skip(report, found, path, "source code beside a database is not read")
            found = stored
        else:
            _skip(report, stored, path, "a database beside documents is asked by SQL routes, not searched")
    if not found:
        left = report.skipped
        why = f" ({left[0].line()})" if left else ""
        raise BadInput(f"{path}: no readable document{why}; {_READ}")
    return found


def _skip(report: LoadReport, left: Iterable[Path], path: Path, why: str) -> None:
    for file in left:
        report.skip(name_of(file, path), why)


def survey(path: Path, reading: Reading, report: LoadReport) -> dict[str, int]:
    """Count the files of each ending that would be read, reading at most the first rows of some.

    Files omitted by name, and the columns of files of rows, are added to `report`. Raises BadInput like
    `readable_files`.
    """
    found = readable_files(path, report)
    if is_beir(path):
        return {found[0].name: 1}
    tables = [file for file in found if file.suffix.lower() in endings.ROWS]
    for file in tables[:SURVEYED]:
        name = name_of(file, path)
        try:
            for part in rows.opened(file):
                plan = part.plan(reading)
                if not part.columns:
                    report.empty.add(name)
                    continue
                report.saw(part.columns)
                if not plan.rows:
                    part.check_described(file)
                report.take(f"{name}/{part.sheet}" if part.sheet else name, plan.in_words())
        except (OSError, BadInput, Unavailable) as error:
            report.skip(name, files.reason(error).removeprefix(f"{file}: "))
    if len(tables) > SURVEYED:
        report.take(f"{len(tables) - SURVEYED:,} more files of rows", "not looked into yet")
    return dict(Counter(file.suffix.lower() for file in found).most_common())


def name_of(file: Path, path: Path) -> str:
    """Return a file's name in the source `path`: its path below it, composed (NFC), as UTF-8 can hold it."""
    relative = file.relative_to(path if path.is_dir() else path.parent)
    return composed(os.fsencode(relative.as_posix()).decode("utf-8", "replace"))


def documents_of(
    file: Path,
    path: Path,
    reading: Reading,
    report: LoadReport,
    record: FileRecord | None = None,
    *,
    beir: bool = False,
) -> Iterator[tuple[Document, str]]:
    """Yield the documents of one of the source's readable files, each with where it was found; `beir` is
    `is_beir` of the source.

    A file that cannot be read is left out, and so is a broken row, each with the reason in `report`.
    """
    name = name_of(file, path)
    record = record if record is not None else FileRecord(name)
    for document, where in _documents_of(file, name, beir, reading, report, record):
        record.documents += 1
        record.characters += len(document.text)
        yield document, where
    left = [why for why, one in report.left.items() if name in one.names]
    record.skipped = left[0] if left and not record.documents else record.skipped


def _documents_of(
    file: Path, name: str, beir: bool, reading: Reading, report: LoadReport, record: FileRecord
) -> Iterator[tuple[Document, str]]:
    ending = file.suffix.lower()
    try:
        if beir:
            yield from rows.read_beir(file, report, MAX_BYTES)
        elif ending in table_files.ENDINGS:
            for document in table_files.documents(file, name, report):
                yield document, name
        elif ending in endings.ARCHIVES:
            yield from _archived(file, name, reading, report, record)
        elif ending in endings.LISTS and (tools := tool_lists.read(file, name)):
            record.reader = "tools"
            yield from ((document, name) for document in tools)
        elif ending in endings.ROWS or (ending == ".json" and rows.is_list(file)):
            record.reader = "rows"
            yield from rows.read(file, name, reading, report, record, MAX_BYTES)
        elif file.stat().st_size > MAX_BYTES:
            report.skip(name, f"larger than {MAX_BYTES // 1_000_000} MB, not read")
        else:
            for document in files.read(file, name, reading, report, record):
                yield document, name
    except (OSError, BadInput, Unavailable) as error:
        report.skip(name, files.reason(error).removeprefix(f"{file}: "))


def _archived(
    file: Path, name: str, reading: Reading, report: LoadReport, record: FileRecord
) -> Iterator[tuple[Document, str]]:
    """Yield the documents in a ZIP archive, called `archive.zip/member`; archives within it stay closed."""
    record.reader = "zip"
    with zipfile.ZipFile(io.BytesIO(unpackable(file))) as archive, TemporaryDirectory() as scratch:
        for member in archive.infolist():
            parts = [part for part in composed(member.filename).split("/") if part not in ("", ".", "..")]
            inside, ending = "/".join((name, *parts)), Path(member.filename).suffix.lower()
            if member.is_dir() or Path(member.filename).name.startswith((".", "__MACOSX")):
                continue
            if ending in endings.ARCHIVES:
                why = "archives within archives are not opened"
            elif ending not in endings.READ:
                why = endings.unread(ending)
            elif member.flag_bits & 1:
                why = "it needs a password"
            elif member.file_size > MAX_BYTES:
                why = f"larger than {MAX_BYTES // 1_000_000} MB"
            else:
                why = TRAPPED if is_trap(member) else ""
            if why:
                report.skip(inside, why)
            else:
                unpacked = Path(scratch) / f"member{ending}"
                try:
                    unpacked.write_bytes(archive.read(member))
                except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
                    report.skip(inside, f"it is damaged: {error}")
                    continue
                yield from _documents_of(unpacked, inside, False, reading, report, FileRecord(inside))
