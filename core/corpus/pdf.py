"""PDF files as Markdown: lines in reading order, tables by cell, pages of pictures by OCR (optional)."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from core.corpus.types import BROKEN_LINE, FileRecord
from core.domain.errors import BadInput, Unavailable
from core.domain.program import INSTALLED, PROJECT

T = TypeVar("T")
LARGER = 1.15  # a heading's font size by that of most characters
LONGEST_HEADING = 150  # characters
FULL = 0.75  # of the widest line of its block: a shorter line ends before the margin, so the next one is new
FEW_WORDS = 3  # in a cell of a table on average; a line of prose in a column has more
REPEATED = 0.6  # of the pages, and three at least: a first or last line on so many is no content
_TITLE = re.compile(rb"/Title\s{0,9}(\((?:[^()\\]|\\.){1,400}\)|<[0-9A-Fa-f\s]{2,1600}>)", re.DOTALL)
_NO_TITLE = re.compile(
    r"untitled|\(?anonymous\)?|microsoft \w+ - .*|.*\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?)", re.I
)
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Line:
    """Text on one baseline; positions in points from the lower left corner."""

    text: str
    left: float
    right: float
    bottom: float
    size: float  # of its font, in points
    table: bool = False  # Markdown rows that stay as they are


@dataclass(slots=True)
class PdfPage:
    """One page as a reader found it."""

    lines: list[Line] = field(default_factory=list)
    tables: int = 0
    pictures: int = 0


def read(path: Path, reader: str, record: FileRecord) -> tuple[str, str]:
    """Return a PDF's title and text, and note pages, tables and what was left out in `record`.

    Raises BadInput for a PDF that needs a password or holds no text.
    """
    record.reader = reader
    raw = path.read_bytes()
    text = READERS[reader](raw, record)
    if not text.strip():
        pages = f"its {record.pages} pages hold" if record.pages > 1 else "its page holds"
        raise BadInput(f"no text: {pages} only pictures; run OCR on scans first (--ocr)")
    return _own_title(raw), text


def _oxide(raw: bytes, record: FileRecord) -> str:
    """Read with pdf_oxide: columns one after the other."""
    document = _opened(raw)
    pages = []
    for number in range(document.page_count()):
        try:
            pages.append(_page(document, number))
        except Exception as error:  # noqa: BLE001 - a hostile page can raise anything; the others are read
            record.drop("damaged pages", f"page {number + 1}: {error}")
            pages.append(PdfPage(pictures=1))
    record.pages = len(pages)
    record.tables = sum(page.tables for page in pages)
    record.unread_pages = tuple(n for n, page in enumerate(pages, 1) if not page.lines and page.pictures)
    if record.ocr:
        for number in record.unread_pages:
            found = lines(document.render_page(number - 1, dpi=DPI))
            pages[number - 1].lines = [Line(text, 0, 1, -20.0 * n, 10) for n, text in enumerate(found)]
        record.ocr_pages = tuple(n for n in record.unread_pages if pages[n - 1].lines)
        record.unread_pages = tuple(n for n in record.unread_pages if not pages[n - 1].lines)
    _drop_repeated(pages, record)
    text = _text(pages)
    fields = [(one.name, str(one.value)) for one in document.get_form_fields() if one.value]
    missing = [f"{name}: {value}" for name, value in fields if value not in text]
    return "\n\n".join([text, *(["\n".join(missing)] if missing else [])])


def _opened(raw: bytes) -> Any:
    import pdf_oxide

    pdf_oxide.disable_logging()
    try:
        document = pdf_oxide.PdfDocument.from_bytes(raw)
        count = document.page_count()
    except Exception as error:  # noqa: BLE001 - a hostile file can raise anything
        raise BadInput(f"it cannot be read as a PDF: {error}") from None
    # Authenticating twice damages the streams of a file that needs no password: another copy is asked.
    if b"/Encrypt" in raw and not pdf_oxide.PdfDocument.from_bytes(raw).authenticate("") and count:
        raise BadInput("it needs a password; save it without one")
    return document


def _page(document: Any, number: int) -> PdfPage:
    spans = document.extract_page_text(number, reading_order="column_aware")["spans"]
    spans = [span for span in spans if span.text.strip()]
    page = PdfPage()
    if not spans:
        try:
            page.pictures = len(document.page_images(number))
        except RuntimeError:  # pdf_oxide 0.3.78 cannot list those of an encrypted file
            page.pictures = 1
        return page
    tables: list[Found] = []
    for table in document.extract_tables(number):
        cells = [[" ".join(cell["text"].split()) for cell in row["cells"]] for row in table["rows"]]
        tables.append((table["bbox"], cells))
    tables += _unruled([span for span in spans if not any(_inside(span, box) for box, _ in tables)])
    page.tables = len(tables)
    done: set[int] = set()
    for span in spans if document.page_rotation(number) else _columns(spans):
        at = next((n for n, (box, _) in enumerate(tables) if _inside(span, box)), None)
        if at is None:
            _add(page.lines, span)
        elif at not in done:
            done.add(at)
            (left, bottom, width, height), rows = tables[at]
            page.lines.append(Line(markdown_table(rows), left, left + width, bottom + height, 0, table=True))
    return page


def _columns(spans: Sequence[Any]) -> Iterator[Any]:
    """Yield spans in reading order: pdf_oxide leaves some neighbouring columns line by line."""
    down = sorted(spans, key=lambda span: (-span.bbox[1], span.bbox[0]))
    if (columns := _split(down)) is not down:
        yield from columns
        return
    for run in _runs(spans, lambda last, span: span.bbox[1] > last.bbox[1] + span.font_size):
        yield from _split(run)  # spans down the page


def _runs(things: Iterable[T], apart: Callable[[T, T], bool]) -> Iterator[list[T]]:
    """Yield neighbours in groups: a new one starts with what is `apart` from the one before it."""
    run: list[T] = []
    for thing in things:
        if run and apart(run[-1], thing):
            yield run
            run = []
        run.append(thing)
    if run:
        yield run


def _split(run: Sequence[Any]) -> Sequence[Any]:
    """Return spans with those left of a gutter first; `run` itself if no gutter is found."""
    right = -1e9
    for count, span in enumerate(sorted(run, key=lambda span: span.bbox[0])):
        if span.bbox[0] - right > span.font_size and min(count, len(run) - count) >= 3:
            return [
                *_split([one for one in run if one.bbox[0] < span.bbox[0]]),
                *_split([one for one in run if one.bbox[0] >= span.bbox[0]]),
            ]
        right = max(right, span.bbox[0] + span.bbox[2])
    return run


Box = tuple[float, float, float, float]  # left, bottom, width, height


Found = tuple[Box, list[list[str]]]  # where a table is, and its cells by row


def _unruled(spans: Sequence[Any]) -> Iterator[Found]:
    """Find tables without rules: at least three rows of as many short cells below one another."""
    rows: list[list[Any]] = []
    for span in sorted(spans, key=lambda one: (-one.bbox[1], one.bbox[0])):
        if rows and abs(rows[-1][0].bbox[1] - span.bbox[1]) < span.font_size / 2:
            rows[-1].append(span)
        else:
            rows.append([span])
    groups: list[list[list[Any]]] = []
    for row in rows:
        before = groups[-1][-1] if groups else []
        if len(row) > 1 and len(row) == len(before) and all(map(_is_below, before, row)):
            groups[-1].append(row)
        else:
            groups.append([row])
    for group in groups:
        if len(group) >= 3 and _sparse(group):
            edges = np.array([span.bbox for row in group for span in row])
            left, bottom = edges[:, :2].min(axis=0).tolist()
            right, top = (edges[:, :2] + edges[:, 2:]).max(axis=0).tolist()
            box = (left, bottom, right - left, top - bottom)
            yield box, [[" ".join(span.text.split()) for span in row] for row in group]


def _is_below(a: Any, b: Any) -> bool:
    """Return True if cell b starts, ends or is centred below cell a."""
    starts, wider = a.bbox[0] - b.bbox[0], a.bbox[2] - b.bbox[2]
    return bool(min(abs(starts), abs(starts + wider), abs(starts + wider / 2)) < b.font_size / 2)


def _sparse(rows: Sequence[Sequence[Any]]) -> bool:
    """Return True if rows of spans are a table: few words per cell, or a column of numbers; else they are
    prose.
    """
    columns = [[span.text for span in column] for column in zip(*rows, strict=True)]
    words = sum(len(cell.split()) for column in columns for cell in column)
    return words <= FEW_WORDS * len(rows) * len(columns) or any(
        all(any(map(str.isdigit, cell)) and len(cell.split()) <= 2 for cell in column[1:])
        for column in columns
    )


def _inside(span: Any, box: Box) -> bool:
    x, y = span.bbox[0] + min(span.bbox[2], 2) / 2, span.bbox[1] + span.bbox[3] / 2
    return bool(box[0] - 1 <= x <= box[0] + box[2] + 1 and box[1] - 1 <= y <= box[1] + box[3] + 1)


def _add(lines: list[Line], span: Any) -> None:
    """Add a span to the line it continues, or as a line of its own."""
    left, bottom, width, _ = span.bbox
    size, text = span.font_size or 10.0, span.text
    last = lines[-1] if lines and not lines[-1].table else None
    gap = left - last.right if last is not None else 0.0
    if last is not None and abs(last.bottom - bottom) < size / 2 and -size / 2 <= gap < 4 * size:
        space = gap > 0.12 * size and not last.text.endswith(" ") and not text.startswith(" ")
        last.text += (" " if space else "") + text
        last.right = left + width
    else:
        lines.append(Line(text, left, left + width, bottom, size))


def _drop_repeated(pages: Sequence[PdfPage], record: FileRecord) -> None:
    """Drop running headers and footers: first and last lines that most pages share but for numbers."""
    if len(pages) < 3:
        return
    edges = [{_plain(page.lines[at].text) for at in (0, -1)} for page in pages if len(page.lines) > 1]
    counts = Counter(text for edge in edges for text in edge)
    repeated = {text for text, count in counts.items() if count >= max(3, REPEATED * len(pages))}
    for page in pages:
        for at in (0, -1):
            if len(page.lines) > 1 and _plain(page.lines[at].text) in repeated:
                record.drop("running headers and footers", page.lines.pop(at).text)


def _plain(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.split()))


def _text(pages: Sequence[PdfPage]) -> str:
    sizes = Counter[float]()
    for line in (line for page in pages for line in page.lines):
        sizes[round(line.size, 1)] += 0 if line.table else len(line.text)
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if size > LARGER * body > 0), reverse=True)[:3]
    return "\n\n".join(_block(run, larger) for page in pages for run in _runs(page.lines, _apart))


def _apart(before: Line, line: Line) -> bool:
    """Return True if a new block starts: another font size, more space between lines, another column."""
    if before.table or line.table or abs(before.size - line.size) > 0.5:
        return True
    step = before.bottom - line.bottom
    return not -line.size / 2 <= step <= 1.8 * line.size and abs(before.bottom - line.bottom) > 0.1


def _block(lines: Sequence[Line], larger: Sequence[float]) -> str:
    if lines[0].table:
        return lines[0].text
    size = round(lines[0].size, 1)
    words = " ".join(line.text.strip() for line in lines)
    if size in larger and len(words) <= LONGEST_HEADING and any(map(str.isalpha, words)):
        return f"{'#' * (larger.index(size) + 1)} {words}"
    width = max(line.right - line.left for line in lines)
    text = lines[0].text.strip()
    for before, line in itertools.pairwise(lines):
        following = line.text.strip()
        if text.endswith("\N{SOFT HYPHEN}"):
            text = text[:-1] + following
        elif text.endswith(("-", "\N{HYPHEN}")) and text[-2:-1].isalpha() and following[:1].islower():
            text = text[:-1] + BROKEN_LINE + following
        else:
            text += (" " if before.right - before.left >= FULL * width else "\n") + following
    return text


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a Markdown table whose first row is the header."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]) if lines else ""


def _own_title(raw: bytes) -> str:
    """Return the title in the document information, or "" if it is missing, hidden or a mere file name."""
    found = _TITLE.search(raw) if b"/Encrypt" not in raw else None
    if found is None:
        return ""
    given = found[1][1:-1]
    hexed = found[1].startswith(b"<")
    value = bytes.fromhex(given.decode("ascii")) if hexed else re.sub(rb"\\(.)", rb"\1", given)
    try:
        text = value.decode("utf-16" if value[:2] in (b"\xfe\xff", b"\xff\xfe") else "cp1252")
    except ValueError:
        return ""
    title = " ".join(text.split())
    return title if title.isprintable() and not _NO_TITLE.fullmatch(title) else ""


def _kreuzberg(raw: bytes, record: FileRecord) -> str:
    """Read with kreuzberg: finds more headings, and reads columns line by line."""
    from core.corpus.converted import converted

    return converted(raw, ".pdf", record)[1]


READERS: Mapping[str, Callable[[bytes, FileRecord], str]] = {"oxide": _oxide, "kreuzberg": _kreuzberg}


LIST = PROJECT / "requirements-ocr.txt" if INSTALLED else "requirements-ocr.txt"
DPI = 200  # of the rendered page
SURE = 0.5  # of a line: with less confidence it is left out


def lines(picture: bytes) -> list[str]:
    """Return the lines of text in a picture (PNG), from the top. Raises Unavailable without the library."""
    found = _engine()(picture)
    if not found.txts:
        return []
    read = zip(found.boxes, found.txts, found.scores, strict=True)
    sure = [
        (box[:, 1].min(), box[:, 0].min(), box[:, 1].max(), text)
        for box, text, score in read
        if score >= SURE
    ]
    rows: list[list[Any]] = []
    for top, left, bottom, text in sorted(sure):
        if rows and top < (rows[-1][0][0] + rows[-1][0][2]) / 2:
            rows[-1].append((top, left, bottom, text))
        else:
            rows.append([(top, left, bottom, text)])
    return [" ".join(text for *_, text in sorted(row, key=lambda one: one[1])) for row in rows]


@cache
def _engine() -> Any:
    """Load the models that come with the package."""
    if find_spec("rapidocr") is None:
        raise Unavailable(f"OCR needs rapidocr, which is not installed: python -m pip install -r {LIST}")
    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return RapidOCR()
