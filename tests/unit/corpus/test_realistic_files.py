"""Forty realistic files: nearly every word is found, in order, tables by cell, and nothing that is hidden."""

import re

import pytest

from core.corpus.chunk import WHOLE
from core.corpus.reading import Reader
from core.corpus.types import LoadReport, Reading
from tests.realistic import files

pytestmark = pytest.mark.process
pytest.importorskip("kreuzberg", reason="python -m pip install -r requirements-documents.txt")
FILES = files()


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """Every file as one source: the texts by file, and the records of the files."""
    folder = tmp_path_factory.mktemp("realistic")
    for file in FILES:
        (folder / file.name).write_bytes(file.content)
    records, texts = [], {}
    with Reader() as reader:
        for cut in reader.documents(folder, WHOLE, LoadReport(), Reading(html="main"), records.append):
            name = re.split(r"[/#]", cut.document.id)[0]
            texts[name] = f"{texts.get(name, '')}\n\n{cut.document.title}\n\n{cut.document.text}"
    return texts, {record.file: record for record in records}


def plain(text):
    return " ".join(text.split())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_words_in_order_tables_by_cell_and_nothing_hidden(file, reads):
    texts, records = reads
    assert (records[file.name].documents == 0) == file.skipped
    assert bool(records[file.name].skipped) == file.skipped
    text = plain(texts.get(file.name, ""))
    at = [text.find(plain(phrase)) for phrase in file.phrases]
    assert -1 not in at, file.phrases[at.index(-1)]
    assert at == sorted(at)
    for word in file.hidden:
        assert word not in text
    if not file.skipped:
        assert list(records[file.name].unread_pages) == list(file.unread_pages)
    rows = [
        [cell.strip() for cell in line.strip(" |").split(" | ")]
        for line in texts.get(file.name, "").split("\n")
    ]
    for row in file.rows:
        by_cell = any(
            len(one) == len(row) and all(w in ("*", c) for w, c in zip(row, one, strict=True)) for one in rows
        )
        values = re.compile(r"\n".join(rf"[^\n:]+: {re.escape(cell)}" for cell in row))
        assert by_cell or values.search(texts[file.name]), row


def test_at_least_98_percent_of_all_words_are_found(reads):
    texts, _ = reads
    wanted = [(file.name, word) for file in FILES for phrase in file.phrases for word in phrase.split()]
    found = sum(word in texts.get(name, "") for name, word in wanted)
    assert found / len(wanted) >= 0.98


@pytest.mark.parametrize("name", ["two-columns.pdf", "headings.pdf"])
def test_a_pdf_can_be_read_by_another_reader(name, tmp_path):
    (tmp_path / name).write_bytes(next(file.content for file in FILES if file.name == name))
    with Reader() as reader:
        (cut,) = reader.documents(tmp_path, WHOLE, LoadReport(), Reading(pdf="kreuzberg"))
    assert "harbour ferry" in cut.document.text


def test_pages_of_pictures_are_read_by_ocr_where_it_is_asked_for(tmp_path):
    pytest.importorskip("rapidocr", reason="python -m pip install -r requirements-ocr.txt")
    (tmp_path / "scan.pdf").write_bytes(
        next(file.content for file in FILES if file.name == "partly-scanned.pdf")
    )
    records, report = [], LoadReport()
    with Reader() as reader:
        (cut,) = reader.documents(tmp_path, WHOLE, report, Reading(ocr=True), records.append)
    assert "Engineers will close one lane" in cut.document.text
    assert cut.document.meta["ocr_pages"] == "2"
    assert (list(records[0].ocr_pages), list(records[0].unread_pages)) == ([2], [])
