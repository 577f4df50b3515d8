"""One source in several chunkings: named, built, refreshed, stopped, removed; vectors are shared."""

import json
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest

from core.corpus import catalogue, index, uploads
from core.corpus.chunk import Chunking
from core.corpus.source import (
    base_of,
    from_path,
    key_of,
    other_readings,
    slug,
    uncut_remark,
    variant_of,
    variant_order,
    variants_named,
)
from core.domain.errors import BadInput, Cancelled

LONG = "# Returns\n\nSend it back in its box. " + "It is looked at by a person. " * 8
TEXTS = {
    "returns.md": LONG + "\n\n# Refund\n\n" + "The refund is paid after five days. " * 8,
    "short.txt": "Customs may hold a parcel.",
}


@pytest.fixture(autouse=True)
def alone(at_once, monkeypatch):
    monkeypatch.setattr(catalogue, "BUILT_IN", {})


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    return root


def build(folder, settings, given):
    base = index.build(None, folder, settings=settings)
    source = catalogue.source(base.name, settings=settings)
    return [base, *index.build_each(variants_named(source, given), settings=settings)]


def test_names_say_the_source_and_the_chunking():
    assert base_of("support@512-64") == "support"
    assert key_of("support@512-64") == "512-64"
    assert (base_of("support"), key_of("support")) == ("support", None)
    assert slug("Shop Help@headings") == "shop-help@headings"
    assert slug("me@home") == "me-home"
    names = ["b", "a@headings", "a@1024", "a", "a@256"]
    assert sorted(names, key=variant_order) == ["a", "a@256", "a@1024", "a@headings", "b"]


def test_a_folder_that_is_called_like_none_hides_no_corpus(folder, settings, model):
    build(folder, settings, "100")
    shutil.copytree(settings.home / "indexes" / "shop@100", settings.home / "indexes" / "shop@20")
    assert [one.name for one in catalogue.known(settings)] == ["shop", "shop@100"]


def test_a_folder_with_an_at_sign_is_no_chunking(tmp_path):
    (tmp_path / "shop@256").mkdir()
    (tmp_path / "shop@256" / "a.txt").write_text("Some words.")
    assert from_path(tmp_path / "shop@256").name == "shop-256"


def test_each_chunking_is_a_corpus_and_equal_texts_are_embedded_once(folder, settings, model):
    base, small, headings = build(folder, settings, "100,headings")
    assert [one.name for one in (base, small, headings)] == ["shop", "shop@100", "shop@headings"]
    assert headings.size == 3  # two sections, and a text without any
    assert small.size > base.size
    assert len(model.embedded) == len(set(model.embedded)), "no text is embedded twice"
    assert headings.info.reused >= 1  # the short text, at least, is a passage of all
    listed = {one.name: one for one in catalogue.known(settings)}
    assert list(listed) == ["shop", "shop@100", "shop@headings"]
    assert listed["shop@100"].chunking_of == "shop"
    assert listed["shop"].chunking_of is None
    assert {one.state for one in listed.values()} == {"ready"}
    opened = index.open_corpus("shop@headings", settings=settings)
    assert opened.document("returns.md")[0].text == base.document("returns.md")[0].text


def test_a_chunking_follows_how_its_source_is_read(folder, settings, model):
    base, _ = build(folder, settings, "100")
    source = catalogue.source(base.name, settings=settings, language="german")
    index.build(None, source, settings=settings)
    assert catalogue.source("shop@100", settings=settings).language == "german"
    assert catalogue.describe("shop@100", settings).state == "stale"


def test_stopped_halfway_it_goes_on_where_it_was(folder, settings, model):
    (folder / "many.txt").write_text("\n\n".join(f"Paragraph number {n} says {n}." * 3 for n in range(200)))
    base = index.build(None, folder, settings=settings)
    source = catalogue.source(base.name, settings=settings)
    wanted = variants_named(source, "headings,100")
    before = len(model.embedded)
    model.stop, model.stop_after = threading.Event(), before + 70
    with pytest.raises(Cancelled):
        list(index.build_each(wanted, settings=settings, cancel=model.stop))
    done = len(model.embedded)
    assert catalogue.indexed_variants("shop", settings) == ["shop@headings"]
    model.stop = None
    list(index.build_each(wanted, settings=settings))
    assert catalogue.indexed_variants("shop", settings) == ["shop@100", "shop@headings"]
    assert len(model.embedded) == len(set(model.embedded)) > done


def test_they_are_removed_one_by_one_or_with_their_source(folder, settings, model):
    build(folder, settings, "100,headings")
    (folder / "new.txt").write_text("One more.")
    assert {one.state for one in catalogue.known(settings)} == {"stale"}
    index.remove("shop@100", settings=settings)
    assert catalogue.names(settings) == ["shop", "shop@headings"]
    index.remove("shop", settings=settings)
    assert catalogue.names(settings) == []
    assert (folder / "returns.md").is_file()
    index.build(None, folder, settings=settings)
    with pytest.raises(BadInput, match="--chunkings 256,512,headings"):
        catalogue.chosen_variants(catalogue.source("shop", settings=settings), settings)


def test_the_own_chunking_is_left_out_each_is_made_once_and_others_are_told_what_is_allowed(folder, settings):
    source = catalogue.source(folder, settings=settings)
    wanted = [one.name for one in variants_named(source, "700,256,256, headings")]
    assert wanted == ["shop@256", "shop@headings"]
    for given in ("", " , ", "256,colour", "30", "512/300"):
        with pytest.raises(BadInput, match=r"headings|from 50 to|from 0 to"):
            variants_named(source, given)


def test_a_chunking_has_no_chunkings_and_keeps_its_own(folder, settings, model):
    build(folder, settings, "100")
    of = catalogue.source("shop@100", settings=settings)
    with pytest.raises(BadInput, match="itself a chunking of shop"):
        variants_named(of, "256")
    with pytest.raises(BadInput, match="the name of shop as 100"):
        catalogue.source(of, settings=settings, chunking=Chunking(300))
    with pytest.raises(BadInput, match="the name of other as 100"):
        catalogue.source(folder, settings=settings, name="other@100")


def test_readings_are_offered_for_the_kinds_of_files_there_are(folder, settings):
    source = catalogue.source(folder, settings=settings)
    assert other_readings(source) == []
    with pytest.raises(BadInput, match="no file"):
        variants_named(source, "pdf=kreuzberg")
    (folder / "a.html").write_text("<p>Words</p>")
    assert other_readings(source) == ["html-all"], "it is read as html-main"
    (one,) = variants_named(source, "html=all, html-main")
    assert (one.name, one.reading.html, one.chunking) == ("shop@html-all", "all", source.chunking)
    with pytest.raises(BadInput, match="the name of shop as html-all"):
        catalogue.source(source, settings=settings, name="shop@html-all")


def test_a_database_has_no_chunkings(tmp_path, settings):
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as db:
        db.execute("CREATE TABLE orders (id INTEGER, note TEXT)")
    with pytest.raises(BadInput, match="is a database: its rows are not cut"):
        variants_named(catalogue.source(tmp_path / "shop.sqlite", settings=settings), "256")


@pytest.mark.parametrize("files", [{"a.txt": "One line."}, {f"{n}.txt": "The same." for n in range(10)}])
def test_documents_that_cannot_be_cut_are_told(files, tmp_path, settings, model):
    root = tmp_path / "lines"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    _, small = build(root, settings, "256")
    assert small.size == len(files)
    assert "no document is long enough to be cut" in (uncut_remark(small.info) or "")


def test_rows_are_documents_that_a_chunking_may_cut(tmp_path, settings, model):
    (tmp_path / "beir").mkdir()
    rows = [{"_id": f"d{n}", "text": f"Row {n} says something. " * 20} for n in range(3)]
    (tmp_path / "beir" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    whole, cut = build(tmp_path / "beir", settings, "100")
    assert (whole.info.chunking, whole.size) == (Chunking(0), 3)
    assert cut.size > 3
    assert [uncut_remark(one.info) for one in (whole, cut)] == [None, None]


def test_an_uploaded_corpus_keeps_its_files_when_a_chunking_goes(settings, model, tmp_path):
    home = uploads.folder("mine", settings)
    home.mkdir(parents=True)
    (home / "a.md").write_text(TEXTS["returns.md"])
    base = index.build("mine", home, settings=settings)
    small = variant_of(catalogue.source("mine", settings=settings), "100")
    list(index.build_each([small], settings=settings))
    index.remove("mine@100", settings=settings)
    assert (home / "a.md").is_file()
    assert catalogue.names(settings) == [base.name]
