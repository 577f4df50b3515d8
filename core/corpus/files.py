"""One document a file: Markdown, plain text, source code, HTML, PDF, and what is converted to Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.corpus import endings
from core.corpus.load_report import LoadReport
from core.corpus.types import Document, Reading
from core.domain.encoding import decoded, shown
from core.domain.errors import BadInput, describe, shortened

REPLACED = "\N{REPLACEMENT CHARACTER}"
BROKEN = 0.45  # of the characters: with more that did not decode a file is no text, or of another encoding
NO_MEMORY = "it needs more memory than the reader may use"
AROUND = "without navigation, header and footer of the page (--html all keeps them)"
PACKED = 5_000  # characters of a line of code: nobody wrote that, a program made it
# A line is looked at once: text is anybody's, and must not take time with its square.
_HEADING = re.compile(r"^#[ \t]+(?=[^ \t\n])(.*)$", re.MULTILINE)


def read(path: Path, name: str, reading: Reading, report: LoadReport) -> Iterator[Document]:
    """The document in `path`; nothing when it is empty or cannot be read, with the reason in `report`."""
    try:
        title, text = map(storable, READERS[path.suffix.lower()](path, _Asked(name, reading, report)))
        if text.count(REPLACED) + text.count("\0") > BROKEN * len(text):
            raise BadInput("most of it does not decode: it is not text or has another encoding than it says")
    except MemoryError:
        report.skip(name, NO_MEMORY)
        return
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything; it is left out and reported
        report.skip(name, shortened(reason(error), 200))
        return
    if REPLACED in text:
        report.replaced.add(name)
    if text.strip():
        yield Document(name, title or re.sub(r"[-_]+", " ", path.stem), text)
    else:
        report.empty.add(name)


def reason(error: Exception) -> str:
    """Why a file cannot be read: the system's words where it says so, without naming the file again."""
    return error.strerror if isinstance(error, OSError) and error.strerror else describe(error)


def storable(text: str) -> str:
    """`text` as UTF-8 can hold it: half of a surrogate pair becomes a replacement character."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text


class _Asked:
    """What a reader is told beside the path."""

    def __init__(self, name: str, reading: Reading, report: LoadReport) -> None:
        self.name, self.reading, self.report = name, reading, report

    def decode(self, raw: bytes) -> str:
        """The text of a file, with plain line ends; an encoding that had to be guessed is told."""
        text, encoding = decoded(raw)
        told(self.name, encoding, self.report)
        return text.replace("\r\n", "\n").replace("\r", "\n")


def told(name: str, encoding: str, report: LoadReport) -> None:
    """Tell the encoding of a file that says nothing about it and is not UTF-8."""
    if not encoding.startswith("utf-8") and encoding not in ("utf-16", "utf-32"):
        report.take(name, f"not UTF-8, read as {shown(encoding)}")


def _plain(path: Path, asked: _Asked) -> tuple[str, str]:
    return "", asked.decode(path.read_bytes())


def _code(path: Path, asked: _Asked) -> tuple[str, str]:
    text = asked.decode(path.read_bytes())
    if max(map(len, text.split("\n"))) > PACKED:
        raise BadInput(f"a line is longer than {PACKED:,} characters: generated or minified code is not read")
    return path.name, text


def _markdown(path: Path, asked: _Asked) -> tuple[str, str]:
    return headed(asked.decode(path.read_bytes()))


def headed(text: str) -> tuple[str, str]:
    """The text below a leading `# ` heading, which is the title and so searched with every passage."""
    for heading in _HEADING.finditer(text):
        if title := heading[1].rstrip(" \t#"):
            body = text[heading.end() :].lstrip("\n")
            leads = not text[: heading.start()].strip()
            return title, body if leads and body.strip() else text
    return "", text


def _html(path: Path, asked: _Asked) -> tuple[str, str]:
    from core.corpus import html

    page = html.read(path.read_bytes(), main=asked.reading.html == "main")
    told(asked.name, page.guessed or "utf-8", asked.report)
    if page.dropped:
        asked.report.take(asked.name, AROUND)
    return page.title, page.text


def _pdf(path: Path, _asked: _Asked) -> tuple[str, str]:
    from pypdf import PdfReader

    reader = PdfReader(path)
    title = reader.metadata.title if reader.metadata else None
    text = "\n\n".join(page.extract_text() for page in reader.pages)
    if not text.strip():
        raise BadInput("this PDF contains no text; run OCR on scans first")
    return title or "", text


def _converted(path: Path, _asked: _Asked) -> tuple[str, str]:
    from core.corpus.converted import markdown

    title, text = markdown(path)
    heading, body = headed(text)
    return (title, text) if title and title != heading else (heading, body)


Read = Callable[[Path, _Asked], tuple[str, str]]
READERS: Mapping[str, Read] = {
    **dict.fromkeys(endings.MARKDOWN, _markdown), **dict.fromkeys(endings.PLAIN, _plain),
    **dict.fromkeys(endings.HTML, _html), **dict.fromkeys(endings.PDF, _pdf),
    **dict.fromkeys(endings.CONVERTED, _converted), **dict.fromkeys(endings.CODE, _code),
}  # fmt: skip
