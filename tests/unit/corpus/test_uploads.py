"""Uploaded files: kept under safe names, read before they are kept, never lost by a bad one."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.corpus import catalogue, index, uploads
from core.corpus.endings import READ
from core.domain.errors import BadInput
from tests.fakes import HashEmbedder
from tests.loaded import documents

NAMES = (
    "../../etc/passwd|..\\..\\boot|/etc/cron.d/x|C:\\x|....//....//x|.hidden|a\x00b|a\nb|\u202egpj.exe|~root|🙂|con"
    "|.removed"
)
HOSTILE = [
    *(f"{name}.txt" for name in (*NAMES.split("|"), "x" * 400)),
    *("<img src=x onerror=alert(1)>.html", "$(rm -rf).md", "-rf.md", "é" * 200 + ".pdf"),
]


def safe(name):
    try:
        return uploads.safe_name(name)
    except BadInput:
        return None


@pytest.mark.trust
@given(st.one_of(st.text(max_size=300), st.text(max_size=300).map(lambda stem: stem + ".txt")))
@example("..txt")
@example("___.md")
def test_no_name_leaves_the_folder(name):
    kept = safe(name)
    if kept is None:
        return
    assert Path(kept).name == kept
    assert not kept.startswith((".", "-rf/"))
    assert kept not in ("", ".", "..")
    assert kept.isprintable()
    assert "/" not in kept
    assert "\\" not in kept
    assert len(kept.encode()) <= uploads.LONGEST
    assert Path(kept).suffix in READ
    assert uploads.safe_name(kept) == kept


@pytest.mark.trust
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_kept_inside_or_refused(settings, name):
    home, content = uploads.folder("mine", settings), b"<p>Some text.</p>"
    if name.endswith(".pdf") or safe(name) is None:
        with pytest.raises(BadInput, match="" if safe(name) else "has no name"):
            uploads.add("mine", {name: content}, settings)
        assert not home.exists()
        return
    (kept,) = uploads.add("mine", {name: content}, settings).names
    assert [path for path in settings.home.rglob("*") if path.is_file()] == [home / kept]
    assert [document.id for document in documents(home)] == [kept]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no file was chosen"),
        ({"a.txt": b""}, "a.txt is empty"),
        ({"a.txt": b" \n\t"}, "a.txt contains no text"),
        ({"a.exe": b"MZ"}, r"'a.exe' is not a supported document \(.exe files are not read\); upload files"),
        ({"noending": b"text"}, "is not a supported document"),
        ({"a.pdf": b"%PDF-1.4 broken"}, "a.pdf: "),
        ({"a.jsonl": b"{not json"}, r"^a.jsonl:1: not valid JSON"),
        ({"a.jsonl": b'{"id": 1, "size": 2}'}, "no text column"),
        ({"corpus.jsonl": b'{"_id": "1", "text": "x"}'}, "BEIR set; enter the path of its folder"),
        ({"x/a.txt": b"One.", "y/a.txt": b"Two."}, "would both be 'a.txt'"),
    ],
)
def test_what_cannot_be_read_gets_one_clear_error_and_nothing_is_kept(settings, files, said):
    uploads.add("mine", {"kept.txt": b"Here before."}, settings)
    with pytest.raises(BadInput, match=said):
        uploads.add("mine", files, settings)
    assert uploads.kept("mine", settings) == [uploads.Kept("kept.txt", 12)]
    assert [path.name for path in uploads.folder("mine", settings).iterdir()] == ["kept.txt"]


def test_a_file_taken_out_comes_back_over_nothing_that_came_since(settings):
    uploads.add("mine", {"a.txt": b"Old.", "b.txt": b"Two."}, settings)
    uploads.add("mine", {"dir/a.TXT": b"One."}, settings)  # takes the place of the one of its name
    assert [one.name for one in uploads.kept("mine", settings)] == ["a.txt", "b.txt"]
    uploads.remove("mine", "a.txt", settings)
    assert [document.id for document in documents(uploads.folder("mine", settings))] == ["b.txt"]
    with pytest.raises(BadInput, match="the only document"):
        uploads.remove("mine", "b.txt", settings)
    with pytest.raises(BadInput, match=r"no uploaded document '\.\./b\.txt'"):
        uploads.remove("mine", "../b.txt", settings)
    assert uploads.restore("mine", settings) == "a.txt"
    assert uploads.documents_of("mine", "a.txt", settings)[0].text == "One."
    with pytest.raises(BadInput, match="no document was removed"):
        uploads.restore("mine", settings)
    uploads.remove("mine", "a.txt", settings)
    uploads.add("mine", {"a.txt": b"Another."}, settings)
    with pytest.raises(BadInput, match="was added again"):
        uploads.restore("mine", settings)
    assert uploads.documents_of("mine", "a.txt", settings)[0].text == "Another."


def test_a_name_that_means_another_source_is_refused_before_anything_is_kept(settings, tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="built-in"):
        uploads.add("support", {"a.txt": b"Text."}, settings)
    source = tmp_path / "help"
    source.mkdir()
    (source / "a.txt").write_text("Text.")
    index.build("help", source, settings=settings, embedder=HashEmbedder())
    with pytest.raises(BadInput, match="is already the corpus of"):
        uploads.add("help", {"a.txt": b"Text."}, settings)
    assert uploads.corpora(settings) == []
    assert not uploads.is_uploaded(source, settings)
    uploads.add("mine", {"a.txt": b"Text."}, settings)
    corpus = index.build("mine", uploads.folder("mine", settings), settings=settings, embedder=HashEmbedder())
    assert corpus.info.documents == 1
    found = catalogue.current("mine", settings)
    assert found is not None
    assert uploads.is_uploaded(found.source.path, settings)
