"""One document a file: Markdown, plain text, HTML, PDF."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.corpus.types import Document, LoadReport
from core.errors import BadInput
from core.trace import describe

BLOCKS = [
    *("address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "figcaption", "figure", "footer"),
    *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre"),
    *("section", "table", "tr", "ul"),
]
NOT_TEXT = ["script", "style", "noscript", "template", "head", "svg", "iframe", "object"]
REPLACED = "\N{REPLACEMENT CHARACTER}"


def read(path: Path, name: str, report: LoadReport) -> Iterator[Document]:
    """The document in `path`; nothing when it is empty or cannot be read, with the reason in `report`."""
    try:
        title, text = map(storable, READERS[path.suffix.lower()](path))
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything; it is left out and reported
        report.skipped.append(f"{name}: {describe(error)[:200]}")
        return
    report.replaced += REPLACED in text
    if text.strip():
        yield Document(name, title or re.sub(r"[-_]+", " ", path.stem), text)
    else:
        report.empty += 1


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
    heading = re.search(r"^#[ \t]+(.+?)[ \t#]*$", text, re.MULTILINE)
    if heading is None:
        return "", text
    body = text[heading.end() :].lstrip("\n")
    leads = not text[: heading.start()].strip()
    return heading[1], body if leads and body.strip() else text


def _html(path: Path) -> tuple[str, str]:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(path.read_bytes(), "lxml")
    heading = soup.title or soup.h1
    title = heading.get_text(" ", strip=True) if heading else ""
    for tag in soup(NOT_TEXT):
        tag.decompose()
    for tag in soup("br"):
        tag.replace_with("\n")
    for tag in soup(["td", "th"]):
        tag.append(" ")
    for tag in soup(BLOCKS):
        tag.insert(0, "\n")
        tag.append("\n")
    lines = (" ".join(line.split()) for line in soup.get_text().split("\n"))
    return title, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _pdf(path: Path) -> tuple[str, str]:
    from pypdf import PdfReader

    reader = PdfReader(path)
    title = reader.metadata.title if reader.metadata else None
    text = "\n\n".join(page.extract_text() for page in reader.pages)
    if not text.strip():
        raise BadInput("no text in this PDF; a scan needs OCR first")
    return title or "", text


READERS: Mapping[str, Callable[[Path], tuple[str, str]]] = {
    ".md": _markdown, ".markdown": _markdown, ".txt": _plain, ".html": _html, ".htm": _html, ".pdf": _pdf,
}  # fmt: skip
