"""One document a file: Markdown, plain text, HTML, PDF."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.corpus.types import Document, LoadReport
from core.domain.errors import BadInput, describe, shortened

REPLACED = "\N{REPLACEMENT CHARACTER}"
BROKEN = 0.45  # of the characters: with more that did not decode a file is no text, or of another encoding
NO_MEMORY = "it needs more memory than the reader may use"
# A line is looked at once: text is anybody's, and must not take time with its square.
_HEADING = re.compile(r"^#[ \t]+(?=[^ \t\n])(.*)$", re.MULTILINE)


def read(path: Path, name: str, report: LoadReport) -> Iterator[Document]:
    """The document in `path`; nothing when it is empty or cannot be read, with the reason in `report`."""
    try:
        title, text = map(storable, READERS[path.suffix.lower()](path))
        if text.count(REPLACED) + text.count("\0") > BROKEN * len(text):
            raise BadInput("most of it is not valid UTF-8: it is not text or has another encoding")
    except MemoryError:
        report.skipped.append(f"{name}: {NO_MEMORY}")
        return
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything; it is left out and reported
        report.skipped.append(f"{name}: {shortened(reason(error), 200)}")
        return
    report.replaced += REPLACED in text
    if text.strip():
        yield Document(name, title or re.sub(r"[-_]+", " ", path.stem), text)
    else:
        report.leave_out(name)


def reason(error: Exception) -> str:
    """Why a file cannot be read: the system's words where it says so, without naming the file again."""
    return error.strerror if isinstance(error, OSError) and error.strerror else describe(error)


def storable(text: str) -> str:
    """`text` as UTF-8 can hold it: half of a surrogate pair becomes a replacement character."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text


def decode(raw: bytes) -> str:
    """UTF-8, or UTF-16 where a byte order mark says so; what does not decode is replaced."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return raw.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")


def _plain(path: Path) -> tuple[str, str]:
    return "", decode(path.read_bytes())


def _markdown(path: Path) -> tuple[str, str]:
    """The text below a leading `# ` heading, which is the title and so searched with every passage."""
    text = decode(path.read_bytes())
    for heading in _HEADING.finditer(text):
        if title := heading[1].rstrip(" \t#"):
            body = text[heading.end() :].lstrip("\n")
            leads = not text[: heading.start()].strip()
            return title, body if leads and body.strip() else text
    return "", text


def _html(path: Path) -> tuple[str, str]:
    from core.corpus.html import text_of

    return text_of(path.read_bytes())


def _pdf(path: Path) -> tuple[str, str]:
    from pypdf import PdfReader

    reader = PdfReader(path)
    title = reader.metadata.title if reader.metadata else None
    text = "\n\n".join(page.extract_text() for page in reader.pages)
    if not text.strip():
        raise BadInput("this PDF contains no text; run OCR on scans first")
    return title or "", text


READERS: Mapping[str, Callable[[Path], tuple[str, str]]] = {
    ".md": _markdown, ".markdown": _markdown, ".txt": _plain, ".html": _html, ".htm": _html, ".pdf": _pdf,
}  # fmt: skip
