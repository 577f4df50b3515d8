"""Office documents and e-mail as Markdown, by kreuzberg; workbooks as rows, by openpyxl. Both optional."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from email import message_from_bytes
from email.policy import default
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.corpus import html
from core.corpus.types import FileRecord
from core.domain.errors import BadInput, Unavailable
from core.domain.program import INSTALLED, PROJECT

LIST = PROJECT / "requirements-documents.txt" if INSTALLED else "requirements-documents.txt"
Lines = Iterator[tuple[int, list[str]]]  # from 1, each with its cells
HOW = f"python -m pip install -r {LIST}"
LARGEST = 50_000_000  # bytes of a file
UNPACKED = 200_000_000  # bytes of all parts of a file together: more is likelier a trap than a text
PARTS = 20_000
TRAP, TIMES = 10_000_000, 200  # bytes of a part, and by its packed size, above which it is a bomb
TRAPPED = f"unpacked it is more than {TIMES} times as large: likelier a trap than a text"
COLUMNS = 16_384  # of a sheet
OLD = b"\xd0\xcf\x11\xe0"  # how a document of before 2007 begins, and one that needs a password
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
MIME = {
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".odt": f"{_OPEN}.text",
    ".epub": "application/epub+zip",
    ".rtf": "application/rtf",
    ".eml": "message/rfc822",
    ".pdf": "application/pdf",
}
UNESCAPED = (".epub",)  # what kreuzberg returns of these has no backslashes before marks
_NOTES = "ppt/notesSlides/"
# kreuzberg 4.10.4 drops these characters from the texts of .docx: they pass it as others.
_LOST = {"&amp;": "\ue0a1", "&lt;": "\ue0a2", "&gt;": "\ue0a3"}
_SWAP = re.compile("|".join(_LOST))
_BACK = {0xE0A1: "&", 0xE0A2: "<", 0xE0A3: ">"}
_HIDDEN = re.compile(r"<w:r(?: [^<>]*)?><w:rPr>(?:(?!</w:rPr>).)*?<w:vanish/>.*?</w:r>", re.DOTALL)
_RUN = re.compile(r"<w:t(?: [^<>]*)?>[^<]*</w:t>")
_STARS = re.compile(r"(?<!\\)\*+")  # bold and italic; a star of the text is escaped
_ESCAPE = re.compile(r"(?<!^)\\([\\`*_{}\[\]()#+.!<>&~^$=:-])", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_FENCED = re.compile(r"(^```[^\n]*\n.*?^```[^\S\n]*$)", re.MULTILINE | re.DOTALL)


def missing(name: str) -> str | None:
    """Explain how to get the library `name`; None if it is installed."""
    return f"reading it needs {name}, which is not installed: {HOW}" if find_spec(name) is None else None


def markdown(path: Path, record: FileRecord) -> tuple[str, str]:
    """Return a document's own title and its text as Markdown. Raises BadInput, Unavailable."""
    ending = path.suffix.lower()
    raw = path.read_bytes() if ending in (".rtf", ".eml") else unpackable(path)
    return converted(raw, ending, record)


def converted(raw: bytes, ending: str, record: FileRecord) -> tuple[str, str]:
    """Convert a document of the kind `ending`; see `markdown`."""
    if why := missing("kreuzberg"):
        raise Unavailable(why)
    import kreuzberg

    record.reader = "kreuzberg"
    # Its type hints lack `disable_ocr`.
    options: dict[str, Any] = {"output_format": "markdown", "use_cache": False, "disable_ocr": True}
    config = kreuzberg.ExtractionConfig(**options)
    try:
        found = kreuzberg.extract_bytes_sync(_prepared(raw, ending, record), MIME[ending], config=config)
    except kreuzberg.KreuzbergError as error:
        raise BadInput(f"it cannot be read: {error}") from None
    record.tables = len(found.tables)
    record.pages = found.get_page_count() if ending in (".pdf", ".pptx") else 0
    text = found.content
    if ending not in UNESCAPED:  # no emphasis and, but at the beginning of lines, no escapes; code stays
        parts = _FENCED.split(text)
        parts[::2] = [_ESCAPE.sub(r"\1", _STARS.sub("", part)) for part in parts[::2]]
        text = "".join(parts)
    text = _PICTURE.sub(r"\1", text).translate(_BACK)
    if ending == ".pptx":
        text += "".join(f"\n\nNotes: {note}" for note in _notes(raw))
    title = found.metadata.get("title") or found.metadata.get("subject") or ""
    return str(title).strip(), re.sub(r"\n{3,}", "\n\n", text).strip()


def _prepared(raw: bytes, ending: str, record: FileRecord) -> bytes:
    """Return a file without hidden text; in a .docx, replace the characters that kreuzberg would drop."""
    if ending == ".eml":
        return _shown_mail(raw, record)
    if ending != ".docx":
        return raw
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            if part.filename.startswith("word/") and part.filename.endswith(".xml"):
                text = content.decode("utf-8", "replace")
                for run in _HIDDEN.findall(text) if "<w:vanish/>" in text else ():
                    record.drop("hidden text", "".join(re.findall(r"<w:t[^<>]*>([^<]*)", run)))
                    text = text.replace(run, "")
                content = _RUN.sub(lambda run: _SWAP.sub(lambda one: _LOST[one[0]], run[0]), text).encode()
            new.writestr(part.filename, content)
    return out.getvalue()


def _shown_mail(raw: bytes, record: FileRecord) -> bytes:
    """Return an e-mail whose HTML is plain text, without the elements that a reader of mail does not show."""
    mail = message_from_bytes(raw, policy=default)
    changed = False
    for part in mail.walk():
        content = part.get_payload(decode=True)
        if isinstance(content, bytes) and part.get_content_type() == "text/html" and not part.is_attachment():
            page = html.read(content)
            for why, text in page.dropped.items():
                record.drop(why, text)
            part.set_content(page.text)
            changed = True
    return mail.as_bytes() if changed else raw


def _notes(raw: bytes) -> Iterator[str]:
    """Yield the speaker's notes of a presentation, which kreuzberg leaves out."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for name in sorted(archive.namelist(), key=lambda name: (len(name), name)):
            if name.startswith(_NOTES) and name.endswith(".xml"):
                root = etree.fromstring(archive.read(name), parser)
                paragraphs = root.iterfind(".//{*}sp/{*}txBody/{*}p")
                lines = ("".join(run.text or "" for run in one.iterfind("{*}r/{*}t")) for one in paragraphs)
                if text := "\n".join(line for line in lines if line.strip()):
                    yield text


def sheets(path: Path, left_out: Callable[[str, str, str], object]) -> Iterator[tuple[str, Lines]]:
    """Yield the visible sheets of a workbook with their visible rows and columns: values, not formulas, as
    text.

    `left_out` is called with a sheet, what of it is hidden, and its text. Raises BadInput, Unavailable.
    """
    if why := missing("openpyxl"):
        raise Unavailable(why)
    from openpyxl import load_workbook

    raw = unpackable(path)
    try:
        book: Any = load_workbook(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything
        raise BadInput(f"it cannot be read as a workbook: {type(error).__name__}: {error}") from None
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            left_out(sheet.title, "hidden sheets", sheet.title)
            continue
        sheet.reset_dimensions()  # what it says of its size may be anything
        yield sheet.title, _rows(sheet, left_out)


def _rows(sheet: Any, left_out: Callable[[str, str, str], object]) -> Lines:
    line, hidden_cells = 0, {"hidden rows": list[str](), "hidden columns": list[str]()}
    try:
        rows, columns = _hidden(sheet)
        for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            cells = [_cell(value) for value in row]
            unseen = cells if line in rows else [cells[n - 1] for n in columns if n <= len(cells)]
            if any(unseen):
                hidden_cells["hidden rows" if line in rows else "hidden columns"].append(" ".join(unseen))
            if line not in rows:
                yield line, [cell for n, cell in enumerate(cells, 1) if n not in columns]
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise BadInput(
            f"sheet {sheet.title!r} cannot be read beyond line {line}: {type(error).__name__}: {error}"
        ) from None
    for what, texts in hidden_cells.items():
        if texts:
            left_out(sheet.title, what, "\n".join(texts))


def _hidden(sheet: Any) -> tuple[set[int], set[int]]:
    """Return the numbers of a sheet's hidden rows and columns, which openpyxl omits when it streams."""
    from lxml import etree

    rows, columns, number = set[int](), set[int](), 0
    with sheet._get_source() as source:
        for _, element in etree.iterparse(source, tag=("{*}col", "{*}row"), resolve_entities=False):
            unseen = element.get("hidden") in ("1", "true")
            if etree.QName(element).localname == "row":
                number = int(element.get("r", number + 1))
                rows |= {number} if unseen else set()
            elif unseen:
                columns |= set(range(int(element.get("min")), min(int(element.get("max")), COLUMNS) + 1))
            element.clear()
    return rows, columns


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


def unpackable(path: Path) -> bytes:
    """Return the file if it is an archive of a reasonable size. Raises BadInput."""
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
    if path.suffix.lower() != ".zip" and any(map(is_trap, parts)):
        raise BadInput(TRAPPED)
    return raw


def is_trap(part: zipfile.ZipInfo) -> bool:
    """Return True for a part of an archive that only a bomb has."""
    return part.file_size > max(TRAP, TIMES * part.compress_size)
