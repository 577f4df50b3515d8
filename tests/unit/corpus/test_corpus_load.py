"""Reading documents: every format, and every way a source can be broken."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from core.corpus import load as loader
from core.corpus import table_files
from core.corpus.chunk import WHOLE, Chunking, passages
from core.corpus.load import readable_files
from core.corpus.source import from_path
from core.corpus.tables import Tables, missing
from core.corpus.types import Document, LoadReport
from core.domain.encoding import decoded
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.text import storable
from tests.loaded import documents


def beir(folder, *lines):
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def row(id, text="some text", **more):
    return json.dumps({"_id": id, "text": text, **more})


def test_beir_folder_gives_ids_titles_texts_and_the_rest_as_meta(tmp_path):
    folder = beir(
        tmp_path, row("a", title="T", metadata={"year": 2020}), "", json.dumps({"_id": 7, "text": "x"})
    )
    first, second = documents(folder)
    assert (first.id, first.title, first.text) == ("a", "T", "some text")
    assert json.loads(first.meta["metadata"]) == {"year": 2020}
    assert (second.id, second.title) == ("7", "")


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ('{"_id": "b", "text": ', "not valid JSON"),
        ('{"text": "x"}', "no '_id'"),
        ('{"_id": "b", "text": 3}', "'text' is a number"),
        ('{"_id": "b", "text": "x", "title": []}', "'title' is a list"),
        ('{"_id": {}, "text": "x"}', "id is an object"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_broken_beir_line_is_left_out_with_its_line_and_the_reason(tmp_path, broken, what):
    report = LoadReport()
    assert [d.id for d in documents(beir(tmp_path, row("a"), broken, row("c")), report)] == ["a", "c"]
    (left,) = report.skipped
    assert left.names == ("corpus.jsonl:2",)
    assert what in left.reason
    assert "\n" not in left.reason


def test_an_id_that_occurs_twice_is_written_with_the_file_and_the_line(tmp_path):
    found = list(documents(beir(tmp_path, row("a"), row("b"), row("a", "other"), row("a", "third"))))
    assert [d.id for d in found] == ["a", "b", "corpus.jsonl#a", "corpus.jsonl#a:4"]


def test_empty_documents_are_counted_and_equal_texts_are_kept_and_counted(tmp_path):
    report = LoadReport()
    lines = (row("a"), row("b", " \n"), row("c"), row("d", "", title="only a title"))
    assert [d.id for d in documents(beir(tmp_path, *lines), report)] == ["a", "c", "d"]
    assert (report.empty.count, report.duplicates) == (1, 1)
    assert len(report.notes()) == 2


def test_folder_of_every_format(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "guide.md").write_text("# The guide\n\nBody with `# not a heading`.\n")
    (tmp_path / "notes-of-may.txt").write_bytes(b"\xef\xbb\xbfLine one\r\nLine two")
    (tmp_path / "page.html").write_text(
        "<title>The page</title><script>evil()</script><p>One <b>bold</b> word<table><tr><td>a<td>b</table>"
    )
    page = Canvas(str(tmp_path / "paper.pdf"))
    page.drawString(72, 720, "Words in a PDF")
    page.save()
    rows = '{"id": "j1", "content": "from jsonl", "by": "x"}\n{"body": "no id"}\n'
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "table.csv").write_text('Id;Title;Text\nc1;A;"two\nlines"\n', encoding="utf-8-sig")
    (tmp_path / "cut.txt").write_bytes("größer ".encode() * 20 + b"\xc3 and more")
    report = LoadReport()
    found = {d.id: d for d in documents(tmp_path, report)}
    texts = {id: (d.title, d.text.strip()) for id, d in found.items() if id != "cut.txt"}
    assert texts == {
        "sub/guide.md": ("The guide", "Body with `# not a heading`."),
        "notes-of-may.txt": ("notes of may", "Line one\nLine two"),
        "page.html": ("The page", "One bold word\n\n| a | b |"),
        "paper.pdf": ("paper", "Words in a PDF"),
        "j1": ("", "by: x\n\nfrom jsonl"),
        "rows.jsonl#2": ("", "body: no id\n\nno id"),
        "c1": ("A", "two\nlines"),
    }
    assert found["j1"].meta == {"by": "x"}
    assert found["cut.txt"].text == "größer " * 20 + "\ufffd and more"
    assert report.notes()[0].endswith("some of their characters did not decode: cut.txt")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret.md").write_text("secret")
    (inside / "own.md").write_text("own")
    (inside / "link.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    for one, other in (("loop.md", "loop.md"), ("one.md", "other.md"), ("other.md", "one.md")):
        (inside / one).symlink_to(inside / other)
    (inside / "up").symlink_to(inside)
    assert [d.id for d in documents(inside)] == ["own.md"]


def test_what_cannot_be_read_is_left_out_with_a_reason(tmp_path, monkeypatch):
    (tmp_path / "good.txt").write_text("good")
    (tmp_path / "broken.pdf").write_bytes(b"not a pdf at all")
    (tmp_path / "big.txt").write_text("x" * 100_001)
    for name, password in (("scan.pdf", None), ("locked.pdf", "secret")):
        page = Canvas(str(tmp_path / name), pagesize=(100, 100), encrypt=password)
        page.showPage()
        page.save()
    monkeypatch.setattr(loader, "MAX_BYTES", 100_000)
    report = LoadReport()
    assert [d.id for d in documents(tmp_path, report)] == ["good.txt"]
    told = "\n".join(report.notes())
    for said in ("broken.pdf: ", "big.txt: ", "larger than", "scan.pdf: ", "OCR", "locked.pdf: "):
        assert said in told


def test_a_source_without_documents_says_what_is_read(tmp_path):
    (tmp_path / "a.xyz").write_text("x")
    with pytest.raises(
        BadInput, match=r"no readable document.*a\.xyz: \.xyz files are not read.*\.pdf.*\.csv"
    ):
        readable_files(tmp_path)
    with pytest.raises(BadInput, match=r"no readable document \(\.xyz files are not read\); .*\.pdf.*\.csv"):
        readable_files(tmp_path / "a.xyz")
    with pytest.raises(BadInput, match="no such file"):
        list(documents(tmp_path / "nowhere"))


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_text_that_utf8_can_hold_or_are_refused(raw):
    try:
        text = storable(decoded(raw)[0])
    except BadInput:
        return
    assert text.encode().decode() == text


@given(st.text(st.characters(categories=["L", "Zs", "Cc", "Cs", "P", "So", "Mn"]), max_size=200))
def test_storable_changes_only_half_surrogates(text):
    clean = storable(text)
    clean.encode()
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert clean == text


texts = st.lists(
    st.text(st.sampled_from("ab .,!?\n\t#-|*`é😀\u0301漢ß\u200f\r"), max_size=120), max_size=12
).map("\n\n".join)
chunkings = st.builds(
    lambda size, part: Chunking(size, size * part // 100), st.integers(50, 300), st.integers(0, 50)
)


@given(texts, chunkings, st.sampled_from(["x.md", "x.txt"]))
def test_passages_are_slices_that_cover_all_text(text, chunking, id):
    document = Document(id, "title", text)
    found = passages(document, chunking)
    covered = [False] * len(text)
    for passage in found:
        assert passage.text == text[passage.start : passage.end]
        assert passage.id == f"{id}:{passage.start}-{passage.end}"
        assert len(passage.text) <= chunking.size * 1.25 + 60  # the white space between joined pieces
        covered[passage.start : passage.end] = [True] * len(passage.text)
    assert all(seen or char.isspace() for seen, char in zip(covered, text, strict=True))
    assert len({p.id for p in found}) == len(found)
    assert [p.start for p in found] == sorted(p.start for p in found)


def test_whole_documents_keep_their_id():
    (passage,) = passages(Document("d", "t", " text "), WHOLE)
    assert (passage.id, passage.text, passage.start, passage.end) == ("d", " text ", 0, 6)


def test_a_heading_stays_with_its_text():
    body = "## Rules\n\n" + "A sentence of the rules. " * 27
    found = passages(Document("x.md", "t", body), Chunking(700))
    assert all(p.text.strip() != "## Rules" for p in found)


@pytest.mark.parametrize(("size", "overlap"), [(10, 0), (700, 351), (700, -1), (200_000, 0)])
def test_impossible_chunking_says_what_is_allowed(size, overlap):
    with pytest.raises(BadInput, match="must be from"):
        Chunking(size, overlap)


def _database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE city (name TEXT, size INTEGER)")
        connection.execute("INSERT INTO city VALUES ('Ulm', 9)")
    connection.close()


@pytest.mark.process
def test_each_row_of_a_price_list_is_searched_and_numbers_alone_are_described(tmp_path):
    (tmp_path / "a.md").write_text("# Prices\nAll of them.")
    (tmp_path / "price list.csv").write_text("Price,Article\n12.5,vase\n12.5,lamp\n")
    (tmp_path / "series.csv").write_text("Year,Value\n2020,12.5\n2021,7\n")
    found = {d.id: d.text for d in documents(tmp_path)}
    assert found["price list.csv#2"] == "article: vase\nprice: 12.5"
    assert sorted(found) == ["a.md", "price list.csv#2", "price list.csv#3", "series.csv/series"]
    assert found["series.csv/series"].splitlines()[1:] == [
        "- year (integer): 2020, 2021",
        "- value (real): 12.5, 7.0",
    ]


@pytest.mark.process
def test_tables_are_the_documents_where_there_is_only_a_database(tmp_path):
    _database(tmp_path / "geo.sqlite")
    (tmp_path / "questions.jsonl").write_text('{"id": "q", "text": "How big is Ulm?", "sql": "SELECT 1"}\n')
    (tmp_path / "Thumbs.db").write_text("no database")
    for path in (tmp_path, tmp_path / "geo.sqlite"):
        (document,) = documents(path)
        assert (document.id, document.title) == ("geo.sqlite/city", "city")
        assert "- name (text): Ulm" in document.text
    (tmp_path / "a.txt").write_text("Ulm lies on the Danube.")
    assert [d.id for d in documents(tmp_path)] == ["a.txt"]
    with pytest.raises(BadInput, match=r"no readable document.*\.sqlite"):
        readable_files(tmp_path / "Thumbs.db")


@pytest.mark.process
def test_the_tables_of_a_corpus_are_found_or_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "LOOK_AGAIN_S", 1e-6)
    settings = Settings(home=tmp_path / "home")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    opened, corpus = Tables(settings), "mine"
    home = settings.home / "indexes" / corpus
    home.mkdir(parents=True)
    facts = dict.fromkeys(("fingerprint", "stamp", "content"), "x")
    record = {**facts, "read": [], "source": from_path(folder).record()}
    (home / "current.json").write_text(json.dumps(record))
    assert "put one file ending in .sqlite" in (missing(Need.TABLES, corpus, settings) or "")
    assert "no CSV files" in (missing(Need.CSV, corpus, settings) or "")
    _database(folder / "one.sqlite")
    assert missing(Need.TABLES, corpus, settings) is None
    assert opened.get(corpus, Need.TABLES) is opened.get(corpus, Need.TABLES)
    (folder / "t.csv").write_text("a,b\n1,2\n")
    assert opened.get(corpus, Need.CSV).query("SELECT b FROM t").rows == ((2,),)
    (folder / "t.csv").write_text("a,b\n1,33\n")
    assert opened.get(corpus, Need.CSV).query("SELECT b FROM t").rows == ((33,),)
    _database(folder / "two.db")
    with pytest.raises(Unavailable, match=r"has 2 databases \(one.sqlite, two.db\)"):
        opened.get(corpus, Need.TABLES)
    assert missing(Need.TABLES, "support", settings) is None
    assert "no CSV files" in (missing(Need.CSV, "support", settings) or "")


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_longmemevals_sessions_are_documents_each_once(tmp_path, kind):
    def asked(*ids):
        sessions = [
            [{"role": "user", "content": f"I am {id}"}, {"role": "assistant", "content": "Hi"}] for id in ids
        ]
        return {
            "haystack_session_ids": ids,
            "haystack_sessions": sessions,
            "haystack_dates": ["2023/05/20"] * 2,
        }

    rows = [asked("s1", "s2"), asked("s2", "s3"), {"haystack_sessions": "damaged"}]
    content = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
    (tmp_path / f"longmemeval.{kind}").write_text(content)
    found = list(documents(tmp_path / f"longmemeval.{kind}", LoadReport()))
    assert [one.id for one in found] == ["s1", "s2", "s3"]
    assert found[0].text == "date: 2023/05/20\n\nuser: I am s1\n\nassistant: Hi"


def test_a_parquet_file_of_texts_is_read_by_row(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist(
        [{"id": "d1", "content": "One."}, {"id": "d2", "content": "Two."}]
    )
    pq.write_table(table, tmp_path / "biology.parquet")
    found = list(documents(tmp_path / "biology.parquet", LoadReport()))
    assert [(one.id, one.text) for one in found] == [("d1", "One."), ("d2", "Two.")]
