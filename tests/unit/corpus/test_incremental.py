"""A refreshed index embeds again only what changed, and files written again unchanged leave it ready."""

import os

import pytest

from core.corpus import catalogue, index
from core.domain.settings import Settings
from tests.fakes import HashEmbedder

pytestmark = pytest.mark.process


class Counting(HashEmbedder):
    """An embedder that remembers the texts it was given."""

    def __init__(self):
        super().__init__()
        self.given = []

    def embed(self, texts, *args, **kwargs):
        self.given += texts
        return super().embed(texts, *args, **kwargs)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    for module in (index, catalogue):
        monkeypatch.setattr(module, "embedder_identity", lambda name, _settings: name)
    return Settings(home=tmp_path / "home", embedder="hash")


def test_changed_added_and_removed_files_re_index_only_themselves(tmp_path, settings, monkeypatch):
    embedder = Counting()
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: embedder)
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nText of {name}.")
    index.build("source", folder, settings=settings)
    assert len(embedder.given) == 3
    embedder.given.clear()
    (folder / "a.md").write_text("# a\n\nAnother text.")
    (folder / "b.md").unlink()
    (folder / "d.md").write_text("# d\n\nText of d.")
    corpus = index.build(None, "source", settings=settings)
    assert sorted(embedder.given) == ["a Another text.", "d Text of d."]
    assert [one.id for one in corpus.documents()] == ["a.md", "c.md", "d.md"]
    assert corpus.info.reused == 1
    assert {record.file for record in corpus.readings} == {"a.md", "c.md", "d.md"}


def test_files_written_again_with_the_same_bytes_leave_the_index_ready(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.md").write_text("words")
    index.build("source", folder, settings=settings)
    os.utime(folder / "a.md", ns=(1, 1))
    catalogue._changed.clear()
    assert catalogue.describe("source", settings).state == "ready"
    (folder / "a.md").write_text("other")
    catalogue._changed.clear()
    assert catalogue.describe("source", settings).state == "stale"
