# ruff: noqa: E501 - lines of the files that are written
"""Realistic files for the readers, built here, each with the words, rows and phrases a reader has to find."""

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"


@dataclass(frozen=True)
class RealisticFile:
    """A file with what its reading must and must not contain."""

    name: str
    content: bytes
    phrases: Sequence[str]  # in reading order, each within one line of the source
    rows: Sequence[Sequence[str]] = ()  # of its tables, by cell
    hidden: Sequence[str] = ()  # must not be found
    unread_pages: Sequence[int] = ()  # pages without text, from 1
    skipped: bool = False  # cannot be read at all


STORY = (
    "The harbour ferry leaves every morning at seven and returns after dusk.",
    "Passengers with bicycles board first and wait on the lower deck.",
    "Season tickets are sold at the kiosk beside the fish market.",
    "Dogs travel free of charge when they are kept on a lead.",
    "In heavy fog the crossing is replaced by a bus along the coast.",
    "Lost property is kept for ninety days in the office on pier four.",
    "Groups of more than twelve people should reserve a week ahead.",
    "The captain may refuse luggage that blocks the emergency exits.",
)
COUNCIL = (
    "The council adopted a budget for repairing the old stone bridge.",
    "Engineers will close one lane while the arches are inspected.",
    "Residents of the northern quarter asked for a pedestrian crossing.",
    "Lorries above seven tonnes must use the bypass until October.",
    "A temporary footbridge opens beside the mill on the first of May.",
    "Shopkeepers receive compensation if deliveries are delayed.",
    "The mayor promised monthly reports on costs and progress.",
    "Objections can be filed in writing at the town hall.",
)
FEES = (
    ("Service", "Adults", "Children"),
    ("Library card", "18.00", "0.00"),
    ("Replacement", "5.50", "2.75"),
    ("Study room", "12.00", "6.00"),
    ("Late return", "0.40", "0.10"),
)
LIGATED = (
    (
        "Office staff file certificates efficiently in the final workflow.",
        "O\ufb03ce sta\ufb00 \ufb01le certi\ufb01cates e\ufb03ciently in the \ufb01nal work\ufb02ow.",
    ),
    (
        "Different affiliates reflect conflicting definitions.",
        "Di\ufb00erent a\ufb03liates re\ufb02ect con\ufb02icting de\ufb01nitions.",
    ),
)


def _canvas(draw: Callable[[Any], None], **kept: Any) -> bytes:
    """A PDF that `draw` draws."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(595, 842), invariant=True, **kept)
    pdfmetrics.registerFont(TTFont("DejaVu", FONT))
    canvas.setFont("DejaVu", 10)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def _lines(canvas: Any, lines: Sequence[str], x: float = 60, y: float = 780, step: float = 15) -> None:
    for number, line in enumerate(lines):
        canvas.drawString(x, y - number * step, line)


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)


def _columns(canvas: Any, columns: Sequence[Sequence[str]], width: int, by_row: bool) -> None:
    canvas.setFont("DejaVu", 9)
    broken = [[line for sentence in column for line in _wrapped(sentence, width)] for column in columns]
    places = [(x, y, line) for x, lines in enumerate(broken) for y, line in enumerate(lines)]
    if by_row:
        places.sort(key=lambda place: (place[1], place[0]))
    for x, y, line in places:
        canvas.drawString(50 + x * 500 / len(columns), 780 - y * 13, line)


def _platypus(parts: Callable[[Any], list[Any]], **kept: Any) -> bytes:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import SimpleDocTemplate

    out = io.BytesIO()
    SimpleDocTemplate(out, invariant=True, **kept).build(parts(getSampleStyleSheet()))
    return out.getvalue()


def _pdf_table(ruled: bool) -> bytes:
    from reportlab.lib import colors
    from reportlab.platypus import Paragraph, Spacer, Table

    def parts(styles: Any) -> list[Any]:
        style = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)] if ruled else []
        table = Table(FEES, colWidths=(160, 90, 90), style=style)
        return [
            Paragraph("Fees of the library", styles["Heading1"]),
            Paragraph(STORY[0], styles["Normal"]),
            Spacer(1, 12),
            table,
            Spacer(1, 12),
            Paragraph(STORY[3], styles["Normal"]),
        ]

    return _platypus(parts)


def _scan(lines: Sequence[str]) -> Any:
    """The picture of a printed page."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (1240, 1754), 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(FONT, 30)
    for number, line in enumerate(lines):
        draw.text((90, 120 + 60 * number), line, font=font, fill=0)
    return picture


def _draw_scan(canvas: Any, lines: Sequence[str]) -> None:
    from reportlab.lib.utils import ImageReader

    canvas.drawImage(ImageReader(_scan(lines)), 0, 0, 595, 842)


def _partly_scanned(canvas: Any) -> None:
    _lines(canvas, STORY[:3])
    canvas.showPage()
    _draw_scan(canvas, COUNCIL[:3])
    canvas.showPage()
    canvas.setFont("DejaVu", 10)
    _lines(canvas, STORY[3:6])


def _hyphenated(canvas: Any) -> None:
    _lines(
        canvas,
        (
            "Every traveller needs an authori-",
            "zation before the departure; the reimburse-",
            "ment follows within thirty days. A long-",
            "term rental counts as accommo-",
            "dation. The authorization is valid for one trip and the",
            "reimbursement covers accommodation.",
            "A long-term contract is cheaper.",
        ),
    )


def _rotated(canvas: Any) -> None:
    canvas.setPageRotation(90)
    canvas.saveState()
    canvas.translate(550, 60)
    canvas.rotate(90)
    for number, line in enumerate(STORY[:5]):
        canvas.drawString(0, number * -18, line)
    canvas.restoreState()


def _footnoted(canvas: Any) -> None:
    _lines(canvas, STORY[:4])
    canvas.setFont("DejaVu", 7)
    canvas.line(60, 120, 200, 120)
    _lines(canvas, ["1 Except on public holidays and in the winter season."], y=105)


def _running(canvas: Any) -> None:
    for page, at in enumerate((0, 3, 5), 1):
        canvas.setFont("DejaVu", 8)
        canvas.drawString(60, 815, "Harbour Company, internal")
        canvas.drawString(280, 30, f"Page {page} of 3")
        canvas.setFont("DejaVu", 10)
        _lines(canvas, STORY[at : at + 2])
        canvas.showPage()


def _form(canvas: Any) -> None:
    _lines(canvas, ("Application for a mooring", "Name of the vessel", "Length in metres"), step=40)
    canvas.acroForm.textfield(name="vessel", x=220, y=735, width=200, height=20, value="Seagull Marina")
    canvas.acroForm.textfield(name="length", x=220, y=695, width=200, height=20, value="12.40")


def _encrypted(user: str) -> bytes:
    from reportlab.lib.pdfencrypt import StandardEncryption

    return _canvas(
        lambda canvas: _lines(canvas, STORY[:4]), encrypt=StandardEncryption(user, "owner", strength=128)
    )


def _foreign(canvas: Any) -> None:
    _lines(
        canvas,
        (
            "Паром отправляется каждое утро в семь часов.",
            "Το πλοίο επιστρέφει μετά τη δύση του ηλίου.",
            "Größere Gruppen müssen eine Woche vorher reservieren.",
            "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        ),
    )


def _heading_pdf() -> bytes:
    from reportlab.platypus import Paragraph

    def parts(styles: Any) -> list[Any]:
        return [
            Paragraph("Rules of the harbour", styles["Title"]),
            Paragraph("Boarding", styles["Heading2"]),
            *(Paragraph(line, styles["Normal"]) for line in STORY[:3]),
            Paragraph("Refunds", styles["Heading2"]),
            *(Paragraph(line, styles["Normal"]) for line in STORY[3:6]),
        ]

    return _platypus(parts, title="Rules of the harbour")


def _pdfs() -> list[RealisticFile]:
    newsletter = [*STORY, *COUNCIL]
    return [
        RealisticFile(
            "two-columns.pdf", _canvas(lambda c: _columns(c, (STORY, COUNCIL), 45, True)), newsletter
        ),
        RealisticFile(
            "columns-in-turn.pdf", _canvas(lambda c: _columns(c, (STORY, COUNCIL), 45, False)), newsletter
        ),
        RealisticFile(
            "three-columns.pdf",
            _canvas(lambda c: _columns(c, (STORY[:6], COUNCIL[:6], STORY[6:] + COUNCIL[6:]), 28, True)),
            [*STORY[:6], *COUNCIL[:6], *STORY[6:], *COUNCIL[6:]],
        ),
        RealisticFile(
            "ligatures.pdf",
            _canvas(lambda c: _lines(c, [shown for _, shown in LIGATED])),
            [plain for plain, _ in LIGATED],
        ),
        RealisticFile(
            "hyphens.pdf",
            _canvas(_hyphenated),
            (
                "Every traveller needs an authorization before the departure",
                "the reimbursement follows within",
                "A long-term rental counts as accommodation",
                "A long-term contract is cheaper.",
            ),
        ),
        RealisticFile("ruled-table.pdf", _pdf_table(True), ("Fees of the library", STORY[0], STORY[3]), FEES),
        RealisticFile(
            "plain-table.pdf", _pdf_table(False), ("Fees of the library", STORY[0], STORY[3]), FEES
        ),
        RealisticFile("rotated.pdf", _canvas(_rotated), STORY[:5]),
        RealisticFile(
            "footnote.pdf",
            _canvas(_footnoted),
            (*STORY[:4], "Except on public holidays and in the winter season."),
        ),
        RealisticFile("running-header.pdf", _canvas(_running), (*STORY[:2], *STORY[3:7])),
        RealisticFile(
            "form.pdf",
            _canvas(_form),
            ("Application for a mooring", "Name of the vessel", "Length in metres"),
        ),
        RealisticFile("form-values.pdf", _canvas(_form), ("Seagull Marina", "12.40")),
        RealisticFile("partly-scanned.pdf", _canvas(_partly_scanned), STORY[:6], unread_pages=(2,)),
        RealisticFile("scan.pdf", _canvas(lambda c: _draw_scan(c, STORY[:3])), (), skipped=True),
        RealisticFile("password.pdf", _encrypted("secret"), (), skipped=True),
        RealisticFile("owner-password.pdf", _encrypted(""), STORY[:4]),
        RealisticFile(
            "scripts.pdf",
            _canvas(_foreign),
            (
                "Паром отправляется каждое утро в семь часов.",
                "Το πλοίο επιστρέφει μετά τη δύση του ηλίου.",
                "Größere Gruppen müssen eine Woche vorher reservieren.",
                "Příliš žluťoučký kůň úpěl ďábelské ódy.",
            ),
        ),
        RealisticFile(
            "headings.pdf",
            _heading_pdf(),
            ("Rules of the harbour", "Boarding", *STORY[:3], "Refunds", *STORY[3:6]),
        ),
    ]


def _docx(make: Callable[[Any], None]) -> bytes:
    from docx import Document

    document = Document()
    make(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _merged(document: Any) -> None:
    document.add_heading("Mooring fees", 1)
    document.add_paragraph(STORY[0])
    table = document.add_table(4, 4)
    for row, cells in enumerate(
        (
            ("Class", "Season", "Day", "Week"),
            ("A", "Summer", "15", "80"),
            ("", "Winter", "9", "45"),
            ("B", "All year", "22", "120"),
        )
    ):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    table.cell(1, 0).text = "A"
    document.add_paragraph(STORY[1])


def _plain_docx(document: Any) -> None:
    document.core_properties.title = "Rules of the harbour"
    document.sections[0].header.paragraphs[0].text = "Harbour Company, internal"
    document.add_heading("Boarding", 1)
    for line in STORY[:3]:
        document.add_paragraph(line)
    document.add_heading("Luggage", 2)
    for line in STORY[3:6]:
        document.add_paragraph(line, style="List Bullet")
    table = document.add_table(0, 3)
    for cells in FEES:
        for cell, text in zip(table.add_row().cells, cells, strict=True):
            cell.text = text


def _part(content: bytes, name: str, change: Callable[[str], str]) -> bytes:
    """The archive with one of its parts changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            raw = old.read(item)
            new.writestr(item, change(raw.decode()).encode() if item.filename == name else raw)
    return out.getvalue()


def _tracked() -> bytes:
    def change(xml: str) -> str:
        added = (
            '<w:p><w:r><w:t xml:space="preserve">The deposit is </w:t></w:r>'
            '<w:del w:id="1" w:author="A"><w:r><w:delText>forty crowns</w:delText></w:r></w:del>'
            '<w:ins w:id="2" w:author="A"><w:r><w:t>fifty crowns</w:t></w:r></w:ins>'
            "<w:r><w:t>.</w:t></w:r></w:p>"
            "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>Secret remark of the drafter.</w:t></w:r></w:p>"
        )
        return xml.replace("<w:sectPr", added + "<w:sectPr", 1)

    return _part(_docx(lambda d: d.add_paragraph(STORY[0])), "word/document.xml", change)


def _footnote_docx() -> bytes:
    """A Word document with a footnote, which python-docx cannot write."""
    base = _docx(lambda d: d.add_paragraph(STORY[0]))
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    base = _part(
        base,
        "[Content_Types].xml",
        lambda xml: xml.replace(
            "</Types>", f'<Override PartName="/word/footnotes.xml" ContentType="{kind}"/></Types>'
        ),
    )
    base = _part(
        base,
        "word/_rels/document.xml.rels",
        lambda xml: xml.replace(
            "</Relationships>",
            '<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument'
            '/2006/relationships/footnotes" Target="footnotes.xml"/></Relationships>',
        ),
    )
    base = _part(
        base,
        "word/document.xml",
        lambda xml: xml.replace(
            f"<w:t>{STORY[0]}</w:t></w:r>",
            f'<w:t>{STORY[0]}</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r>',
        ),
    )
    out = io.BytesIO(base)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(
            "word/footnotes.xml",
            (
                f'<w:footnotes xmlns:w="{space}"><w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r><w:r>'
                "<w:t>Except on public holidays in winter.</w:t></w:r></w:p></w:footnote></w:footnotes>"
            ),
        )
    return out.getvalue()


def _slides() -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Harbour plan"
    slide.placeholders[1].text = "\n".join(STORY[:3])
    slide.notes_slide.notes_text_frame.text = "Remind the audience of the fog rule."
    second = show.slides.add_slide(show.slide_layouts[5])
    second.shapes.title.text = "Fees"
    table = second.shapes.add_table(len(FEES), 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for row, cells in enumerate(FEES):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    group = second.shapes.add_group_shape()
    box = group.shapes.add_textbox(Inches(1), Inches(5), Inches(4), Inches(1))
    box.text_frame.text = STORY[5]
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


PRICES = (
    ("Article", "Description", "Price", "Unit"),
    ("X-9000", "Brass cleat", "12.5", "piece"),
    ("X-9100", "Mooring rope of polyester, ten metres", "38", "piece"),
    ("R-20", "Fender", "24.9", "pair"),
)


def _book(fill: Callable[[Any], None]) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    fill(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _prices(book: Any) -> None:
    for row in PRICES:
        book.active.append([float(cell) if cell.replace(".", "").isdigit() else cell for cell in row])
    hidden = book.create_sheet("Purchase")
    hidden.append(["Article", "Purchase price"])
    hidden.append(["X-9000", "secretprice"])
    hidden.sheet_state = "hidden"


def _dated(book: Any) -> None:
    from datetime import date

    sheet = book.active
    sheet.title = "Sailings"
    sheet.append(["Timetable of the harbour ferry", None, None])
    sheet.merge_cells("A1:C1")
    sheet.append(["Sailing", "Day", "Passengers"])
    sheet.append(["Morning", date(2026, 5, 4), 120])
    sheet.append(["Evening", date(2026, 5, 5), 96])


HIDDEN_HTML = """<!doctype html><html><head><title>Opening hours</title><style>.off{display:none}</style></head>
<body><nav><a href="/">Home</a> <a href="/fees">Fees navigation</a></nav><main><h1>Opening hours</h1>
<p>%s</p><div hidden>Draft text of the editor</div><p style="color:red; display: none">Old prices</p>
<p aria-hidden="true" style="visibility:hidden">Tracker words</p>
<table><tr><th>Day</th><th>From</th><th>To</th></tr><tr><td rowspan="2">Monday</td><td>9</td><td>12</td></tr>
<tr><td>14</td><td>18</td></tr></table><p>%s</p></main><footer>Imprint of the harbour</footer></body></html>"""

FENCED = f"""---
title: Clients of the harbour API
author: Nobody
---

Intro
=====

{STORY[0]}

```python
# Make a client with a proxy
client = Harbour(proxies="http://proxy")
```

Timeouts
--------

{STORY[1]}
"""

NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"language": "python", "name": "python3"}},
        "cells": [
            {
                "cell_type": "markdown",
                "id": "a",
                "metadata": {},
                "source": ["# Tide tables\n", "\n", STORY[0]],
            },
            {
                "cell_type": "code",
                "id": "b",
                "metadata": {},
                "execution_count": 1,
                "source": "tide = load_tides(2026)",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["high water at 04:12\n"]},
                    {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBORw0KGgo" * 9}},
                ],
            },
            {"cell_type": "markdown", "id": "c", "metadata": {}, "source": STORY[1]},
        ],
    }
)

NESTED = json.dumps(
    {
        "harbour": {
            "name": "Old Port",
            "berths": [
                {"id": "B1", "length": 12.5, "note": STORY[2]},
                {"id": "B2", "length": 18, "note": STORY[3]},
            ],
        },
        "contact": {"email": "port@example.org"},
    }
)

XML = f"""<?xml version="1.0"?><manual lang="en"><title>Rules of the harbour</title><section id="s1">
<heading>Boarding</heading><para>{STORY[0]}</para></section><section id="s2"><heading>Dogs</heading>
<para>{STORY[3]}</para></section></manual>"""

ODT = """<?xml version="1.0" encoding="UTF-8"?><office:document-content
xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.2"><office:body><office:text>
<text:h text:outline-level="1">Rules of the harbour</text:h><text:p>%s</text:p><table:table>%s</table:table>
<text:p>%s</text:p></office:text></office:body></office:document-content>"""

MANIFEST = """<?xml version="1.0"?><manifest:manifest
xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry
manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.text"/></manifest:manifest>"""


def _odt() -> bytes:
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in FEES
    )
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": MANIFEST,
            "content.xml": ODT % (STORY[0], rows, STORY[1]),
        }
    )


def zipped(parts: dict[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _epub() -> bytes:
    from tests.office import epub

    return epub(
        "Rules of the harbour",
        [
            f"<html><body><h1>Boarding</h1><p>{STORY[0]}</p><p>{STORY[1]}</p></body></html>",
            f"<html><body><h1>Dogs</h1><p>{STORY[3]}</p></body></html>",
        ],
    )


def _mail(html: bool) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = "Überfahrt im März"
    mail["From"] = "Kapitän <captain@example.org>"
    mail["To"] = "crew@example.org"
    mail["Date"] = "Mon, 02 Mar 2026 08:00:00 +0000"
    mail.set_content("\n\n".join((STORY[0], "Größere Gruppen müssen vorher reservieren.")))
    if html:
        mail.add_alternative(
            f"<html><body><p>{STORY[0]}</p><p>Größere Gruppen müssen vorher reservieren.</p></body></html>",
            subtype="html",
        )
    mail.add_attachment(STORY[5].encode(), maintype="text", subtype="plain", filename="lost.txt")
    return mail.as_bytes()


RTF = (
    r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 {\b Rules}\par "
    + STORY[0]
    + r"\par Gr\'f6\'dfere Gruppen.\par}"
)
RST = f"Rules of the harbour\n====================\n\n{STORY[0]}\n\nDogs\n----\n\n{STORY[3]}\n"


def _others() -> list[RealisticFile]:
    merged = (("Class", "Season", "Day", "Week"), ("A", "Summer", "15", "80"), ("B", "All year", "22", "120"))
    mail = ("Überfahrt im März", STORY[0], "Größere Gruppen müssen vorher reservieren.")
    return [
        RealisticFile(
            "merged.docx",
            _docx(_merged),
            ("Mooring fees", STORY[0], STORY[1]),
            (*merged, ("*", "Winter", "9", "45")),
        ),
        RealisticFile(
            "plain.docx", _docx(_plain_docx), ("Boarding", *STORY[:3], "Luggage", *STORY[3:6]), FEES
        ),
        RealisticFile(
            "tracked.docx", _tracked(), (STORY[0], "The deposit is fifty crowns."), hidden=("forty crowns",)
        ),
        RealisticFile("footnote.docx", _footnote_docx(), (STORY[0], "Except on public holidays in winter.")),
        RealisticFile("slides.pptx", _slides(), ("Harbour plan", *STORY[:3], "Fees", STORY[5]), FEES),
        RealisticFile("prices.xlsx", _book(_prices), (), PRICES[1:], hidden=("secretprice",)),
        RealisticFile(
            "dated.xlsx",
            _book(_dated),
            (),
            (("Morning", "2026-05-04", "120"), ("Evening", "2026-05-05", "96")),
        ),
        RealisticFile("rules.odt", _odt(), ("Rules of the harbour", STORY[0], STORY[1]), FEES),
        RealisticFile("book.epub", _epub(), ("Boarding", *STORY[:2], "Dogs", STORY[3])),
        RealisticFile(
            "hours.html",
            (HIDDEN_HTML % (STORY[0], STORY[1])).encode(),
            (STORY[0], STORY[1]),
            (("Day", "From", "To"), ("*", "9", "12"), ("*", "14", "18")),
            hidden=("Draft text", "Old prices", "Tracker words", "Fees navigation", "Imprint"),
        ),
        RealisticFile(
            "entities.html",
            (
                f"<p>Caf&eacute; &amp; bar<p>{STORY[0]}<br>{STORY[1]}<ul><li>{STORY[2]}<li>{STORY[3]}</ul>"
            ).encode(),
            ("Café & bar", *STORY[:4]),
        ),
        RealisticFile("fenced.md", FENCED.encode(), (STORY[0], "# Make a client with a proxy", STORY[1])),
        RealisticFile("rules.rst", RST.encode(), ("Rules of the harbour", STORY[0], "Dogs", STORY[3])),
        RealisticFile(
            "tides.ipynb",
            NOTEBOOK.encode(),
            ("Tide tables", STORY[0], "tide = load_tides(2026)", "high water at 04:12", STORY[1]),
            hidden=("iVBORw0KGgo",),
        ),
        RealisticFile("plain.eml", _mail(False), mail),
        RealisticFile("alternative.eml", _mail(True), mail),
        RealisticFile("manual.xml", XML.encode(), ("Boarding", STORY[0], "Dogs", STORY[3])),
        RealisticFile(
            "nested.json", NESTED.encode(), ("Old Port", "B1", STORY[2], "B2", STORY[3], "port@example.org")
        ),
        RealisticFile(
            "excel.csv",
            "sep=;\r\nArticle;Description;Price\r\nX-9000;Brass cleat;12,50\r\nR-20;Fender;24,90\r\n".encode(
                "utf-8-sig"
            ),
            (),
            (("X-9000", "Brass cleat", "12,50"), ("R-20", "Fender", "24,90")),
        ),
        RealisticFile(
            "rules.zip",
            zipped({"a/boarding.md": f"# Boarding\n\n{STORY[0]}", "dogs.txt": STORY[3]}),
            (STORY[0], STORY[3]),
        ),
        RealisticFile("rules.rtf", RTF.encode("ascii"), (STORY[0], "Größere Gruppen.")),
        RealisticFile("rules.txt", "\n".join(STORY).encode("utf-16"), STORY),
    ]


def files() -> list[RealisticFile]:
    """Every file."""
    return [*_pdfs(), *_others()]
