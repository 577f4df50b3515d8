"""Office documents and books as Markdown, workbooks as rows: by libraries that are optional."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.domain.errors import BadInput, Unavailable
from core.domain.program import INSTALLED, PROJECT

LIST = PROJECT / "requirements-documents.txt" if INSTALLED else "requirements-documents.txt"
HOW = f"python -m pip install -r {LIST}"
LARGEST = 50_000_000  # bytes of a file
UNPACKED = 200_000_000  # bytes of all parts of a file together: more is likelier a trap than a text
PARTS = 20_000
CONVERTERS = {".docx": "DocxConverter", ".pptx": "PptxConverter", ".epub": "EpubConverter"}
OLD = b"\xd0\xcf\x11\xe0"  # how a document of before 2007 begins, and one that needs a password
_PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_REMARK = re.compile(r"<!-- [^>\n]{0,100} -->")  # the numbers of slides


def missing(name: str) -> str | None:
    """How to get the library `name`; None where it is here."""
    return f"reading it needs {name}, which is not installed: {HOW}" if find_spec(name) is None else None


def markdown(path: Path) -> tuple[str, str]:
    """The title of a document, where it says one, and its text as Markdown; raises BadInput, Unavailable."""
    if why := missing("markitdown"):
        raise Unavailable(why)
    from markitdown import MissingDependencyException, StreamInfo, converters

    raw, ending = _unpackable(path), path.suffix.lower()
    try:
        # One converter, not MarkItDown itself: that loads a model to guess the kind of file.
        made = getattr(converters, CONVERTERS[ending])().convert(
            io.BytesIO(raw), StreamInfo(extension=ending, filename=path.name)
        )
    except MissingDependencyException:
        raise Unavailable(f"reading {ending} needs a library that is not installed: {HOW}") from None
    text = _REMARK.sub("", _PICTURE.sub(r"\1", made.markdown))
    return (made.title or "").strip(), re.sub(r"\n{3,}", "\n\n", text).strip()


def sheets(path: Path) -> Iterator[tuple[str, Iterator[tuple[int, list[str]]]]]:
    """The sheets of a workbook, each with its rows by line from 1: values, not formulas, as text.

    Raises BadInput, Unavailable.
    """
    if why := missing("openpyxl"):
        raise Unavailable(why)
    from openpyxl import load_workbook

    raw = _unpackable(path)
    try:
        book: Any = load_workbook(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything
        raise BadInput(f"it cannot be read as a workbook: {type(error).__name__}: {error}") from None
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # what it says of its size may be anything
        yield sheet.title, _rows(sheet)


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    line = 0
    try:
        for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            yield line, [_cell(value) for value in row]
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise BadInput(
            f"sheet {sheet.title!r} cannot be read beyond line {line}: {type(error).__name__}: {error}"
        ) from None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _unpackable(path: Path) -> bytes:
    """The file, if it is an archive of a reasonable size; raises BadInput."""
    if path.stat().st_size > LARGEST:
        raise BadInput(f"larger than {LARGEST // 1_000_000} MB, not read")
    raw = path.read_bytes()
    if raw.startswith(OLD):
        raise BadInput("it needs a password, or is of an old format; save it without one, in the new format")
    try:
        parts = zipfile.ZipFile(io.BytesIO(raw)).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadInput(f"it is damaged, or not what its name says: {error}") from None
    size = sum(part.file_size for part in parts)
    if size > UNPACKED or len(parts) > PARTS:
        raise BadInput(
            f"unpacked it has {size / 1e6:,.0f} MB in {len(parts):,} parts; at most"
            f" {UNPACKED // 1_000_000} MB in {PARTS:,} are read"
        )
    return raw
