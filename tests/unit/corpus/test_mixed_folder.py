"""A folder as people have them: every file is read, or listed with the reason why it is not."""

import io
import json
import os
import sqlite3
import time
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from core.cli import main
from core.corpus import catalogue, converted, endings, index, rows
from core.corpus.chunk import WHOLE, Chunking, passages
from core.corpus.load import name_of
from core.corpus.reading import Limits, Reader
from core.corpus.types import Document, LoadReport, Reading
from core.domain import settings as settings_module
from tests import office
from tests.loaded import documents

NEEDS_KREUZBERG = "kreuzberg is not installed: python -m pip install -r requirements-documents.txt"
NEEDS_OPENPYXL = "openpyxl is not installed: python -m pip install -r requirements-documents.txt"
PAGE = (
    "<title>Returns</title><header><a href=/>Home</a> The shop</header>"
    "<nav><ul><li>Start<li>Contact</ul></nav><main><article><header><h1>Returns</h1></header>"
    "<p>Goods come back within 30 days.</article></main><footer>Imprint</footer>"
)


def kreuzberg():
    return pytest.importorskip("kreuzberg", reason=NEEDS_KREUZBERG)


def workbook(hidden_row=0, hidden_columns=(), **sheets):
    """A workbook of sheets with their rows; a row and columns of each may be hidden."""
    openpyxl = pytest.importorskip("openpyxl", reason=NEEDS_OPENPYXL)
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, cells in sheets.items():
        sheet = book.create_sheet(name)
        for row in cells:
            sheet.append(row)
        if hidden_row:
            sheet.row_dimensions[hidden_row].hidden = True
        for column in hidden_columns:
            sheet.column_dimensions[column].hidden = True
    book.save(out)
    return out.getvalue()


def slides(*texts):
    pptx = pytest.importorskip("pptx", reason=NEEDS_KREUZBERG)
    made, out = pptx.Presentation(), io.BytesIO()
    for title, body in texts:
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
    made.save(out)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mixed"
    made.mkdir()
    return made


def read(path, reading=None, **limits):
    report = LoadReport()
    with Reader(limits=Limits(**limits)) as reader:
        found = [
            cut.document for cut in reader.documents(path, WHOLE, report, reading or Reading(html="main"))
        ]
    return found, report


FILES = {
    "guide.rst": b"Guide\n=====\n\nRestart the service.\n",
    "tool.py": b"def wait(n):\n    return 2 ** n\n",
    "app.min.js": b"var a=1;" * 2_000,
    "faq.csv": b"question,answer\nWhy?,So.\nHow?,Thus.\n",
    "prices.csv": b"article,price\nvase,12.5\n",
    "excel.csv": "Frage;Antwort\r\nWo ist die Küche?;Im Erdgeschoss.\r\n".encode("cp1252"),
    "kueche.txt": "Die Küche ist groß, und die Gäste kommen später.".encode("latin-1"),
    "wide.txt": "Größe in UTF-16".encode("utf-16"),
    "photo.txt": b"\x89PNG" + bytes(range(256)),
    "binary.txt": bytes(range(256)) * 9,
    "page.html": PAGE.encode(),
    "empty.txt": b"",
    "empty.csv": b"",
    "odd.jsonl": json.dumps({"headline": "Note", "story": "It left the harbour early in a storm."}).encode(),
    "nothing.jsonl": b'{"a": 1}\n',
    "archive.zip": office.packed({"a.txt": "x"}),
    "archive.gz": b"\x1f\x8b",
    "a.png": b"\x89PNG",
    "b.png": b"\x89PNG",
    "LICENSE": b"MIT",
    "old.doc": b"\xd0\xcf\x11\xe0",
    "data.xyz": b"x",
    "conf.json": b"{",
    "Thumbs.db": b"x",
    ".hidden.md": b"x",
}
TAKEN = {
    *("guide.rst", "tool.py", "faq.csv", "prices.csv", "excel.csv", "kueche.txt", "wide.txt", "page.html"),
    *("odd.jsonl", "archive.zip"),
}


@pytest.mark.process
def test_every_file_is_read_or_listed_with_its_reason(folder):
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "out.txt").symlink_to("/etc/hosts")
    os.mkfifo(folder / "pipe.txt")
    expected = LoadReport()
    here = list(documents(folder, expected, Reading(html="main")))
    found, report = read(folder)
    assert (found, report) == (here, expected), "nothing is lost on the way from the process"
    with Reader() as reader:
        kinds, looked = reader.survey(folder, Reading())
    listed = [name for name in FILES if Path(name).suffix in endings.READ and not name.startswith(".")]
    assert sum(kinds.values()) == len(listed)
    assert "faq.csv: each row is a document, text: answer; title: question" in looked.notes()
    assert {"question", "answer", "frage", "a"} <= set(looked.columns)
    assert {document.id.split("#")[0].split("/")[0] for document in found} == TAKEN
    left = {name for one in report.skipped for name in one.names} | set(report.empty.names)
    assert left == {*FILES, "out.txt", "pipe.txt"} - TAKEN
    told = "\n".join(report.notes())
    for line in TOLD.strip().splitlines():
        assert line in told
    texts = {document.id: document.text for document in found}
    assert texts["kueche.txt"].startswith("Die Küche ist groß")
    assert texts["page.html"] == "# Returns\n\nGoods come back within 30 days."


TOLD = """
2 empty documents left out: empty.csv, empty.txt
a.png, b.png: pictures are not read
archive.gz: archives are not opened; unpack it into the folder
old.doc: .doc files are not read; save it as .docx
data.xyz: .xyz files are not read
conf.json: not valid JSON
LICENSE: a name without an ending is not read; call it .txt if it is text
Thumbs.db: no SQLite database, whatever its name says
.hidden.md: hidden files and folders
out.txt: a link that leads out of the folder
pipe.txt: no file
photo.txt: it is not text but a PNG picture
binary.txt: it is not text: it holds binary data
app.min.js: a line is longer than 5,000 characters
nothing.jsonl: no text column; give one of text, content, body, or name others
excel.csv, kueche.txt: not UTF-8, read as Windows-1252
faq.csv (2 rows): each row is a document, text: answer; title: question
prices.csv (1 row): each row is a document; name: value lines: article, price
odd.jsonl (1 row): each row is a document, text: story; title: headline
page.html: without navigation, header and footer of the page
"""


@pytest.mark.process
def test_office_documents_and_books_are_markdown(folder):
    kreuzberg()
    policy = [("Heading1", "Travel policy"), ("", "Fly economy."), ("Heading1", "Hotels"), ("", "120 €.")]
    (folder / "policy.docx").write_bytes(office.docx(policy))
    (folder / "review.pptx").write_bytes(slides(("Review", "Revenue rose."), ("Outlook", "It rains.")))
    (folder / "novel.epub").write_bytes(
        office.epub("The lighthouse", ["<h1>One</h1><p>The keeper lit the lamp.</p>", "<p>It went out.</p>"])
    )
    found, report = read(folder)
    by = {document.id: document for document in found}
    assert by["policy.docx"].text == "## Travel policy\n\nFly economy.\n\n## Hotels\n\n120 €."
    assert by["review.pptx"].text == "## Review\n\nRevenue rose.\n\n## Outlook\n\nIt rains."
    titles = [by[name].title for name in ("policy.docx", "review.pptx", "novel.epub")]
    assert titles == ["Travel policy", "Review", "The lighthouse"]
    assert "# One\n\nThe keeper lit the lamp.\n\nIt went out." in by["novel.epub"].text
    assert report.notes() == ()
    long = Document("x.docx", "", "# One\n\n" + "Words here. " * 20 + "\n\n# Two\n\n" + "More. " * 9)
    assert [p.text[:5] for p in passages(long, Chunking(300))] == ["# One", "# Two"]  # cut at its headings


@pytest.mark.process
def test_sheets_with_text_are_a_document_a_row_and_others_are_described(folder):
    faq = [["Asked"], ["Question", "Answer", "Owner"], ["Why?", "So.", "Ann"], ["How?", "Thus.", None]]
    numbers = [["article", "price"], [9, 12.5], [4, 7.0]]
    (folder / "book.xlsx").write_bytes(workbook(FAQ=faq, Numbers=numbers, Empty=[]))
    found, report = read(folder)
    assert [(d.id, d.title, d.text, dict(d.meta)) for d in found[:2]] == [
        ("book.xlsx/FAQ#3", "Why?", "owner: Ann\n\nSo.", {"owner": "Ann"}),
        ("book.xlsx/FAQ#4", "How?", "Thus.", {}),
    ]
    described = "Table Numbers of book.xlsx.\n- article: 9, 4\n- price: 12.5, 7"
    assert (found[2].id, found[2].text) == ("book.xlsx/Numbers", described)
    assert "book.xlsx/FAQ: 1 rows above the header left out" in report.notes()
    chosen, _ = read(folder, Reading(("article",)))
    assert [d.text for d in chosen if "Numbers" in d.id] == ["9", "4"]


@pytest.mark.process
def test_hidden_rows_and_columns_are_left_out_and_named(folder):
    table = [
        ("question", "margin", "answer", "note"),
        ("Why?", "12%", "So.", "x"),
        ("Secret?", "9%", "Hush.", "y"),
        ("How?", "3%", "Thus.", "z"),
    ]
    (folder / "book.xlsx").write_bytes(workbook(hidden_row=3, hidden_columns="BD", Sheet=table))
    report, records = LoadReport(), []
    with Reader() as reader:
        found = [cut.document for cut in reader.documents(folder, WHOLE, report, note=records.append)]
    assert [(one.id, one.title, one.text) for one in found] == [
        ("book.xlsx/Sheet#2", "Why?", "So."),
        ("book.xlsx/Sheet#4", "How?", "Thus."),
    ]
    assert not any(hidden in str(one) for one in found for hidden in ("Secret", "%", "note"))
    assert records[0].dropped["hidden rows"] == "Secret? 9% Hush. y"
    assert "12%" in records[0].dropped["hidden columns"]
    assert {"hidden rows left out", "hidden columns left out"} <= report.kinds.keys()


@pytest.mark.parametrize("ending", [".docx", ".pptx", ".epub", ".xlsx"])
def test_what_is_missing_says_how_to_get_it(folder, monkeypatch, ending):
    monkeypatch.setattr(converted, "find_spec", lambda name: None)
    (folder / "a.txt").write_text("words")
    (folder / f"b{ending}").write_bytes(office.docx([("", "x")]))
    report = LoadReport()
    assert [d.id for d in documents(folder, report)] == ["a.txt"]
    (line,) = report.notes()
    assert line.startswith(f"b{ending}: reading it needs ")
    assert line.endswith("is not installed: python -m pip install -r requirements-documents.txt")


LAUGHS = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20 if n else "ha" * 20}">' for n in range(9))
BOMB = f"<!DOCTYPE x [{LAUGHS}]>"


@pytest.mark.process
@pytest.mark.trust
def test_hostile_office_files_are_left_out_and_cost_no_other_file(folder):
    kreuzberg()
    (folder / "burst.docx").write_bytes(office.packed({"word/document.xml": b"0" * 201_000_000}))
    (folder / "many.epub").write_bytes(office.packed({f"{n}": "" for n in range(converted.PARTS + 1)}))
    (folder / "laughs.docx").write_bytes(office.docx([("", "&e8;")], BOMB))
    (folder / "laughs.epub").write_bytes(
        office.packed({"META-INF/container.xml": f"{BOMB}<container>&e8;</container>"})
    )
    (folder / "locked.docx").write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)
    (folder / "nozip.pptx").write_bytes(b"words")
    (folder / "none.xlsx").write_bytes(office.packed({"a.txt": "x"}))
    (folder / "half.docx").write_bytes(office.docx([("", "x" * 9_000)])[:-200])
    (folder / "good.txt").write_text("words")
    began = time.monotonic()
    found, report = read(folder, memory=1024**3)
    assert time.monotonic() - began < 60
    assert [document.id for document in found if document.text] == ["good.txt"]
    told = {name: one.reason for one in report.skipped for name in one.names}
    assert "unpacked it has 201 MB in 1 parts; at most 200 MB" in told["burst.docx"]
    assert f"in {converted.PARTS + 1:,} parts" in told["many.epub"]
    assert "needs a password" in told["locked.docx"]
    assert "not what its name says" in told["nozip.pptx"]
    assert {"laughs.epub", "none.xlsx", "half.docx"} <= told.keys()
    assert all("haha" not in document.text for document in found)
    assert all(len(line) < 1_001 for line in report.notes())


def changed_sheet(change, *rows):
    """A workbook whose sheet's XML was changed."""
    with zipfile.ZipFile(io.BytesIO(workbook(Big=rows))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = change(parts[sheet])
    return office.packed(parts)


@pytest.mark.process
@pytest.mark.trust
def test_a_sheet_that_says_it_has_a_million_rows_is_read_as_far_as_it_goes(folder):
    rows = (["question", "answer"], ["Why?", "So."])
    content = changed_sheet(lambda xml: xml.replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"'), *rows)
    (folder / "big.xlsx").write_bytes(content)
    found, _ = read(folder, seconds=10)
    assert [document.title for document in found] == ["Why?"]


@pytest.mark.process
@pytest.mark.trust
def test_a_workbook_that_takes_too_long_is_left_out(folder):
    rows = b"".join(b'<row r="%d"/>' % n for n in range(1, 1_000_000))
    end = b"</sheetData></worksheet>"
    content = changed_sheet(
        lambda xml: xml.split(b"<sheetData>")[0] + b"<sheetData>" + rows + end, ["a", "b"]
    )
    (folder / "big.xlsx").write_bytes(content)
    (folder / "good.txt").write_text("words")
    found, report = read(folder, seconds=1)
    assert [document.id for document in found] == ["good.txt"]
    assert report.notes() == ("big.xlsx: reading took longer than 1 s",)


def test_source_code_beside_a_database_changes_nothing(folder):
    with sqlite3.connect(folder / "geo.sqlite") as connection:
        connection.execute("CREATE TABLE city (name TEXT)")
    connection.close()
    (folder / "schema.sql").write_text("CREATE TABLE city (name TEXT)")
    report = LoadReport()
    assert [d.id for d in documents(folder, report)] == ["geo.sqlite/city"]
    assert report.notes() == ("schema.sql: source code beside a database is not read",)
    (folder / "a.md").write_text("words")
    report = LoadReport()
    assert [d.id for d in documents(folder, report)] == ["a.md", "schema.sql"]
    assert report.notes() == ("geo.sqlite: a database beside documents is asked by SQL routes, not searched",)


def test_a_choice_is_kept_and_makes_another_index(folder, settings, monkeypatch, capsys):
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    (folder / "faq.csv").write_text("question,answer\nWhy?,So.\n")
    (folder / "page.html").write_text(PAGE)

    def built(*args):
        assert main(["index", *args, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    first = built(str(folder))
    assert any("text: answer; title: question" in note for note in first["warnings"])
    second = built("mixed", "--text-columns", "Question, answer", "--html", "all")
    assert second["fingerprint"] != first["fingerprint"]
    assert built("mixed")["fingerprint"] == second["fingerprint"]
    found = catalogue.current("mixed", settings)
    assert found is not None
    assert found.source.reading == Reading(("question", "answer"), "all")
    assert catalogue.describe("mixed", settings).state == "ready"
    usual = built("mixed", "--text-columns", "", "--html", "main")
    assert usual["fingerprint"] == first["fingerprint"]
    assert main(["index", "mixed", "--text-columns", "anwser"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "error: no file has a column 'anwser'; there are: question, answer"


def test_an_archive_leads_nowhere_and_archives_in_it_stay_closed(folder):
    parts = {"../../evil.md": "# Evil\n\nwords", "a.zip": office.packed({"b.txt": "x"}), "ok.txt": "otters"}
    (folder / "nest.zip").write_bytes(office.packed(parts))
    (folder / "book.ipynb").write_text('{"cells": 3}')
    report = LoadReport()
    assert [d.id for d in documents(folder, report)] == ["nest.zip/evil.md", "nest.zip/ok.txt"]
    assert {name for one in report.skipped for name in one.names} == {"nest.zip/a.zip", "book.ipynb"}


def test_names_that_are_no_utf8_are_told_as_text(folder):
    (folder / "a.md").write_text("words")
    with open(os.fsencode(folder) + b"/\xff.xyz", "wb") as file:
        file.write(b"x")
    report = LoadReport()
    list(documents(folder, report))
    assert report.skipped[0].names == ("\ufffd.xyz",)
    assert name_of(folder / "a.md", folder) == "a.md"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_without_an_end_is_left_out_alone(tmp_path, monkeypatch, name):
    monkeypatch.setattr(rows, "LONGEST_LINE", 1000)
    lines = [("1", "first"), ("2", "x" * 5_500), ("3", "third")]
    if name.endswith("jsonl"):
        text = "".join(json.dumps({"id": id, "text": one}) + "\n" for id, one in [("0", "zero"), *lines])
    else:
        text = "id,text\n" + "".join(f"{id},{one}\n" for id, one in lines)
    (tmp_path / name).write_text(text)
    report = LoadReport()
    assert {one.id for one in documents(tmp_path, report)} - {"0"} == {"1", "3"}
    assert [one.names for one in report.skipped] == [(f"{name}:3",)]


CELLS = '[{"cell_type": "raw", "source": null}, {"cell_type": "markdown", "source": ["eta"]}]'
READ_AS = {
    "pipe.csv": ("sep=|\r\nid|name\r\n7|a,b\r\n", "7", "id: 7\nname: a,b"),
    "pipes.csv": ("sku|name\n7|a,b\n", "pipes.csv#2", "sku: 7\nname: a,b"),
    "twice.csv": ("sku,note,note\n7,a,b\n", "twice.csv#2", "sku: 7\nnote: a\nnote (2): b"),
    "inner.jsonl": ('{"id": "i", "text": {"a": "b", "c": [1, 2]}}\n', "i", "a: b\nc: 1\nc: 2"),
    "cut.xml": ("<a><b>iota</a>", "cut.xml", "iota"),
    "entity.xml": ('<!DOCTYPE r [<!ENTITY x "in">]><r>&x; kappa</r>', "entity.xml", "in kappa"),
    "outer.xml": ('<!DOCTYPE r [<!ENTITY x SYSTEM "/etc/hosts">]><r>&x; mu</r>', "outer.xml", "&x; mu"),
    "none.ipynb": (f'{{"nbformat": 4, "cells": {CELLS}}}', "none.ipynb", "eta"),
    "hugo.md": ('+++\ntitle = "Named"\ndate = 2026-01-02\n+++\n\ngamma', "hugo.md", "gamma"),
}


@pytest.mark.parametrize("name", READ_AS)
def test_what_other_programs_write_is_read_whole(tmp_path, name):
    content, id, text = READ_AS[name]
    (tmp_path / name).write_bytes(content.encode())
    report = LoadReport()
    (found,) = documents(tmp_path, report)
    assert (found.id, found.text) == (id, text)
    assert not report.skipped
    assert name != "hugo.md" or found.title == "Named"


def test_an_entity_that_grows_is_not_filled_in(tmp_path):
    (tmp_path / "bomb.xml").write_text(f"{BOMB.replace('x', 'r', 1)}<r>&e8; end</r>")
    assert all(len(one.text) < 10_000_000 for one in documents(tmp_path))


@pytest.mark.parametrize("plain", [False, True])
def test_what_a_mail_hides_is_left_out(tmp_path, plain):
    kreuzberg()
    mail = EmailMessage()
    mail["Subject"] = "Fees"
    if plain:
        mail.set_content("The fee is five.")
    page = "<p>The fee is <b>five</b>.</p><div style='display:none'>preheader</div>"
    (mail.add_alternative if plain else mail.set_content)(page, subtype="html")
    (tmp_path / "fees.eml").write_bytes(bytes(mail))
    report = LoadReport()
    (found,) = documents(tmp_path, report)
    assert "The fee is five." in found.text
    assert "preheader" not in found.text
    assert "without hidden elements" in report.kinds


def test_what_was_left_out_is_stored_with_the_index(folder, settings):
    (folder / "a.md").write_text("words")
    before = index.build("mixed", folder, settings=settings)
    (folder / "a.png").write_bytes(b"x")
    corpus = index.build("mixed", folder, settings=settings)
    (one,) = corpus.info.skipped  # the same content, so the same index, but another file beside it
    assert corpus.fingerprint == before.fingerprint
    assert corpus.info.notes == (one.line(),)
    (folder / "a.png").unlink()
    assert index.build("mixed", folder, settings=settings).info.skipped == ()
    assert index.open_corpus("mixed", settings=settings).info.notes == ()
