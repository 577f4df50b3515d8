"""Each page works beside damaged and foreign corpora; those say what is wrong and offer the way out."""

import shutil
from pathlib import Path

import pytest

from core.corpus import catalogue, index
from core.corpus.chunk import Chunking
from core.corpus.source import Source
from core.engine import engine as engine_module
from tests.damage import damage_all
from tests.fakes import HashEmbedder
from tests.pages.reading import shown

FOLDER = Path(__file__).resolve().parents[2] / "pages"
PAGES = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "frame.py")
TABS = ("State", "Add", "Documents and chunks", "Passages", "Near-duplicates")


@pytest.fixture
def real(engine, tmp_path, monkeypatch):
    """The engine over the real catalogue, with one built-in corpus that is not indexed."""
    monkeypatch.undo()
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(index, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(index, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(catalogue, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(engine, "corpus", lambda name: index.open_corpus(name, settings=engine.settings))
    monkeypatch.setattr(engine, "embedder", lambda _: HashEmbedder())
    source = tmp_path / "first" / "documents"
    source.mkdir(parents=True)
    (source / "a.md").write_text("# Returns\n\nSend the parcel back within thirty days.")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    runs_from(monkeypatch, source)
    return engine


def runs_from(monkeypatch, documents):
    standard = Source("support", "built-in", documents, Chunking(), title="A shop")
    monkeypatch.setattr(catalogue, "BUILT_IN", {"support": standard})


@pytest.fixture
def damaged(real, tmp_path):
    return damage_all(tmp_path / "first" / "documents", real.settings)


@pytest.mark.trust
def test_every_page_about_a_sound_corpus_works_beside_damaged_ones(visit, damaged):
    for page in PAGES:
        app = visit(page, corpus="good")
        assert app.session_state["corpus"] == "good"
        assert not app.error, [error.value for error in app.error]
        offered = next(box for box in app.sidebar.selectbox if box.key == "corpus").options
        assert set(damaged) <= set(offered)


def test_a_damaged_corpus_says_on_each_tab_what_is_wrong_and_offers_the_fix(visit, damaged):
    names = ("binary-record", "manifest-of-words", "cut-short", "copied", "cut-short")
    for name, tab in zip(names, TABS, strict=True):
        assert name in damaged
        app = visit("corpus.py", corpus=name, tab=tab)
        assert [button.key for button in app.sidebar.button if button.key == "rebuild"], (name, tab)
        assert f"index {'PATH --name ' if 'record' in name else ''}{name}" in shown(app)


def test_building_again_from_the_sidebar_mends_it(visit, damaged, real):
    app = visit("corpus.py", corpus="cut-short")
    app.sidebar.button(key="rebuild").click().run()
    assert not app.exception
    from core.corpus import builds

    build = builds.get("cut-short")
    assert build is not None
    build.wait(60)
    assert build.error is None
    assert catalogue.describe("cut-short", real.settings).state == "ready"


def test_what_cannot_be_built_again_says_why_where_it_was_asked_and_can_be_deleted(visit, damaged, real):
    app = visit("corpus.py", corpus="empty-record", tab="State")
    app.sidebar.button(key="rebuild").click().run()
    assert not app.exception
    assert "index its source again" in "\n".join(error.value for error in app.sidebar.error)
    app.checkbox(key="sure:empty-record").check().run()
    app.button(key="delete_corpus").click().run()
    assert not app.exception
    assert "empty-record" not in catalogue.names(real.settings)


@pytest.mark.trust
def test_every_page_works_in_a_second_copy_of_the_program(visit, real, tmp_path, monkeypatch):
    index.build(None, "support", settings=real.settings)
    runs_from(monkeypatch, tmp_path / "second" / "documents")
    for page in PAGES:
        app = visit(page)
        assert not app.error, [error.value for error in app.error]
        assert "by another copy of the program" in "\n".join(one.value for one in app.sidebar.warning)
        assert [button.key for button in app.sidebar.button if button.key == "rebuild"]


def test_a_file_that_changed_its_bytes_and_lost_its_source_is_told_on_its_tab(visit, real, tmp_path):
    folder = tmp_path / "first" / "documents"
    corpus = index.build("mine", folder, settings=real.settings)
    file = real.settings.home / "indexes" / "mine" / corpus.fingerprint / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    shutil.rmtree(folder)
    app = visit("corpus.py", corpus="mine", tab="Passages")
    assert "no such file or folder" in "\n".join(error.value for error in app.error)


def test_settings_that_cannot_be_read_are_told_in_one_line(visit, monkeypatch):
    from core.domain.errors import BadInput

    def broken():
        raise BadInput("/home/me/routescope.toml: not text in UTF-8")

    monkeypatch.setattr(engine_module, "shared_engine", broken)
    app = visit("compare.py")
    assert shown(app) == "/home/me/routescope.toml: not text in UTF-8"
