"""One document a file: Markdown, plain text, source code, HTML, PDF, notebooks, XML, and office documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.corpus import endings
from core.corpus.types import Document, FileRecord, LoadReport, Reading
from core.domain.encoding import decoded, display_name
from core.domain.errors import BadInput, describe, shortened
from core.domain.text import storable

REPLACED = "\N{REPLACEMENT CHARACTER}"
BROKEN = 0.45  # of the characters: with more that did not decode a file is no text, or of another encoding
NO_MEMORY = "it needs more memory than the reader may use"
PACKED = 5_000  # characters of a line of code: nobody wrote that, a program made it
Parts = tuple[str, str, Mapping[str, str]]  # title, text, metadata


def read(
    path: Path, name: str, reading: Reading, report: LoadReport, record: FileRecord
) -> Iterator[Document]:
    """Yield the document in `path`; nothing if it is empty or unreadable, with the reason in `report`."""
    record.ocr = reading.ocr
    try:
        title, text, meta = READERS[path.suffix.lower()](path, _Asked(name, reading, report, record))
        title, text = storable(title), storable(text)
        if text.count(REPLACED) + text.count("\0") > BROKEN * len(text):
            raise BadInput("most of it does not decode: it is not text or has another encoding than it says")
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything; it is left out and reported
        report.skip(name, shortened(reason(error), 200))
        return
    if REPLACED in text:
        report.replaced.add(name)
    for why in record.dropped:
        report.take(name, f"without {why}")
    if record.unread_pages:
        which = _pages(record.unread_pages, record.pages)
        report.take(name, f"{which} no readable text (pictures, or damaged): not read")
    if record.ocr_pages:
        meta = {**meta, "ocr_pages": ", ".join(map(str, record.ocr_pages))}
        report.take(name, f"{_pages(record.ocr_pages, record.pages)} only pictures: read by OCR")
    if text.strip():
        yield Document(name, title or re.sub(r"[-_]+", " ", Path(name).stem), text, meta)
    else:
        report.empty.add(name)


def _pages(numbers: tuple[int, ...], count: int) -> str:
    listed = ", ".join(map(str, numbers[:20])) + (" …" if len(numbers) > 20 else "")
    return f"page {listed} of {count} holds" if len(numbers) == 1 else f"pages {listed} of {count} hold"


def reason(error: Exception) -> str:
    """Explain why a file cannot be read, in the system's words if it has some, without naming the file."""
    return error.strerror if isinstance(error, OSError) and error.strerror else describe(error)


def flat(value: object) -> str:
    """Return a value of JSON as text."""
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def listed(value: object) -> str:
    """Return a field as one line."""
    found = ", ".join(map(flat, value)) if isinstance(value, list) else flat(value)
    return " ".join(found.split())


def flattened(value: object, path: str = "") -> Iterator[str]:
    """Yield a line `path: value` for each value in nested JSON, in order."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flattened(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from flattened(inner, path)
            if isinstance(inner, Mapping):
                yield ""
    elif value not in (None, ""):
        line = listed(value)
        yield f"{path}: {line}" if path else line


@dataclass(frozen=True, slots=True)
class _Asked:
    """A reader's arguments besides the path."""

    name: str
    reading: Reading
    report: LoadReport
    record: FileRecord

    def decode(self, raw: bytes) -> str:
        """Return the text of a file with plain line ends; report an encoding that had to be guessed."""
        text, encoding = decoded(raw)
        told(self.name, encoding, self.report)
        return text.replace("\r\n", "\n").replace("\r", "\n")


def told(name: str, encoding: str, report: LoadReport) -> None:
    """Report the encoding of a file that does not declare one and is not UTF-8."""
    if not encoding.startswith("utf-8") and encoding not in ("utf-16", "utf-32"):
        report.take(name, f"not UTF-8, read as {display_name(encoding)}")


def _plain(path: Path, asked: _Asked) -> Parts:
    return "", asked.decode(path.read_bytes()), {}


def _code(path: Path, asked: _Asked) -> Parts:
    text = asked.decode(path.read_bytes())
    if max(map(len, text.split("\n"))) > PACKED:
        raise BadInput(f"a line is longer than {PACKED:,} characters: generated or minified code is not read")
    return path.name, text, {}


def _markdown(path: Path, asked: _Asked) -> Parts:
    from core.corpus.markdown import titled

    asked.record.reader = "markdown-it-py"
    return titled(asked.decode(path.read_bytes()))


def _html(path: Path, asked: _Asked) -> Parts:
    from core.corpus import html

    page = html.read(path.read_bytes(), main=asked.reading.html == "main")
    told(asked.name, page.guessed or "utf-8", asked.report)
    asked.record.reader, asked.record.tables = "lxml", page.tables
    for why, text in page.dropped.items():
        asked.record.drop(why, text)
    return page.title, page.text, {}


def _pdf(path: Path, asked: _Asked) -> Parts:
    from core.corpus import pdf

    title, text = pdf.read(path, asked.reading.pdf, asked.record)
    return title or _heading(text), text, {}


def _converted(path: Path, asked: _Asked) -> Parts:
    from core.corpus.converted import markdown
    from core.corpus.markdown import titled

    title, text = markdown(path, asked.record)
    heading, body, _ = titled(text)
    return (title, text, {}) if title and title != heading else (heading or _heading(text), body, {})


def _heading(text: str) -> str:
    from core.corpus.markdown import headings

    return next((one.text for one in headings(text) if one.text), "")


def _parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error}") from None


def _notebook(path: Path, asked: _Asked) -> Parts:
    """Read a Jupyter notebook: its texts, its code and what the code printed; no pictures."""
    from core.corpus.markdown import titled

    asked.record.reader = "notebook"
    book = _parsed(path.read_bytes())
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise BadInput("it is no notebook of version 4: it has no list of cells")
    language = str(book.get("metadata", {}).get("kernelspec", {}).get("language", ""))
    blocks = []
    for cell in book["cells"]:
        source = _joined(cell.get("source", ""))
        blocks.append(f"```{language}\n{source}\n```" if cell.get("cell_type") == "code" else source)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            printed = _joined(output.get("text") or data.get("text/plain", ""))
            blocks.append(f"```\n{printed}\n```" if printed.strip() else "")
            if any(kind.startswith("image/") for kind in data):
                asked.record.drop("pictures that code drew", "")
    return titled("\n\n".join(block.strip("\n") for block in blocks if block.strip()))


def _joined(lines: object) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")


def _xml(path: Path, asked: _Asked) -> Parts:
    """Read an XML file, a line an element with text of its own; the first <title> is its title."""
    from lxml import etree

    asked.record.reader = "lxml"
    safe = {"no_network": True, "load_dtd": False, "remove_comments": True, "remove_pis": True}

    def parse(**how: Any) -> Any:
        return etree.parse(str(path), etree.XMLParser(**safe, **how)).getroot()

    try:
        root = parse(resolve_entities="internal")
    except etree.XMLSyntaxError as error:
        root = parse(resolve_entities=False, recover=True)
        if root is None:
            raise BadInput(f"not valid XML: {error}") from None
        asked.report.take(asked.name, f"damaged XML, read as far as possible: {error.msg}")
    title = next((one.text or "" for one in root.iter("{*}title")), "")
    lines, waiting = list[str](), [root]
    while waiting:
        element = waiting.pop()
        if not isinstance(element.tag, str):
            continue
        children = list(element)
        own = [element.text, *(child.tail for child in children)]
        if any(text and text.strip() for text in own):
            lines.append(" ".join("".join(element.itertext()).split()))
        elif children:
            waiting += reversed(children)
        elif element.attrib:
            named = ((etree.QName(name).localname, value) for name, value in element.items())
            lines.append(", ".join(f"{name}: {value}" for name, value in named))
    return " ".join(title.split()), "\n".join(lines), {}


def _json(path: Path, asked: _Asked) -> Parts:
    """Read nested JSON: a line `path: value` for each value."""
    asked.record.reader = "json"
    found = _parsed(asked.decode(path.read_bytes()))
    title = found.get("title", found.get("name", "")) if isinstance(found, dict) else ""
    return title if isinstance(title, str) else "", "\n".join(flattened(found)), {}


Read = Callable[[Path, _Asked], Parts]
READERS: Mapping[str, Read] = {
    **dict.fromkeys(endings.MARKDOWN, _markdown),
    **dict.fromkeys(endings.PLAIN, _plain),
    **dict.fromkeys(endings.HTML, _html),
    **dict.fromkeys(endings.PDF, _pdf),
    **dict.fromkeys(endings.CONVERTED, _converted),
    **dict.fromkeys(endings.CODE, _code),
    ".ipynb": _notebook,
    ".xml": _xml,
    ".json": _json,
}
