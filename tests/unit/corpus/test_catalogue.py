"""A damaged or foreign corpus is an entry with its state and the way out; the others never notice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from core.cli import main
from core.corpus import catalogue, index, uploads
from core.corpus.chunk import Chunking
from core.corpus.source import Source
from core.domain import settings as module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from tests.damage import COPIED, DAMAGES, damage_all
from tests.fakes import HashEmbedder


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    made = Settings(home=tmp_path / "home", embedder="hash")
    monkeypatch.setattr(module, "current", lambda: made)
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.md").write_text("# Returns\n\nSend the parcel back within thirty days.")
    return folder


def test_every_damaged_corpus_is_listed_with_what_is_wrong_and_what_to_do(
    source: Path, settings: Settings
) -> None:
    damaged = damage_all(source, settings)
    known = {one.name: one for one in catalogue.known(settings)}
    assert known["good"].state == "ready"
    assert set(known) == {*catalogue.BUILT_IN, "good", *damaged}
    for name in damaged:
        assert known[name] == catalogue.describe(name, settings)
        assert known[name].state == "damaged", name
        assert (
            f"python -m core index {'PATH --name ' if 'record' in name else ''}{name}" in known[name].reason
        )
    assert main(["corpora", "--json"]) == 0


@pytest.mark.slow
def test_every_damaged_corpus_can_be_built_again_or_deleted(source: Path, settings: Settings) -> None:
    for name in damage_all(source, settings):
        try:
            catalogue.source(name, settings=settings, known_only=True)
        except BadInput as error:
            assert "record" in name
            assert f"index PATH --name {name}" in str(error)  # noqa: PT017
            index.build(name, source, settings=settings)
        else:
            index.build(name, name, settings=settings)
        assert catalogue.describe(name, settings).state == "ready", name
        assert index.open_corpus(name, settings=settings).name == name
        index.remove(name, settings=settings)
    assert catalogue.names(settings) == ["good"]


def test_a_corpus_whose_record_is_broken_can_be_deleted(source: Path, settings: Settings) -> None:
    index.build("good", source, settings=settings)
    DAMAGES["binary-record"](settings.home / "indexes" / "good")
    index.remove("good", settings=settings)
    assert catalogue.names(settings) == []


def test_a_copy_of_a_corpus_is_built_under_its_own_name_when_it_is_opened(
    source: Path, settings: Settings
) -> None:
    damage_all(source, settings)
    copy = index.open_corpus(COPIED, settings=settings)
    assert (copy.name, index.open_corpus("good", settings=settings).name) == (COPIED, "good")
    assert "is of corpus 'good'" in copy.warnings[0]


def test_uploaded_files_are_found_again_when_the_record_is_lost(settings: Settings) -> None:
    uploads.add("mine", {"a.txt": b"Some words."}, settings)
    index.build("mine", uploads.folder("mine", settings), settings=settings)
    DAMAGES["empty-record"](settings.home / "indexes" / "mine")
    known = catalogue.describe("mine", settings)
    assert known.state == "damaged"
    assert known.reason.endswith("Build it again: python -m core index mine")
    index.build("mine", "mine", settings=settings)
    assert catalogue.describe("mine", settings).state == "ready"


@pytest.fixture
def checkouts(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two copies of the program; the first is the one that runs."""
    folders = []
    for name in ("first", "second"):
        shutil.copytree(source, tmp_path / name / "documents")
        folders.append(tmp_path / name / "documents")
    _runs(monkeypatch, folders[0])
    return folders[0], folders[1]


def _runs(monkeypatch: pytest.MonkeyPatch, documents: Path) -> None:
    standard = Source("support", "built-in", documents, Chunking(), title="A shop")
    monkeypatch.setattr(catalogue, "BUILT_IN", {"support": standard})


def test_the_index_of_another_copy_of_the_program_is_told_and_taken_over(
    checkouts: tuple[Path, Path], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = checkouts
    index.build(None, "support", settings=settings)
    assert catalogue.describe("support", settings).state == "ready"
    _runs(monkeypatch, second)
    (known,) = catalogue.known(settings)
    assert known.state == "stale"
    assert f"indexed from {first} by another copy of the program" in known.reason
    assert str(second) in known.reason
    assert known.reason.endswith("python -m core index support")
    assert index.open_corpus("support", settings=settings).size == 1  # it can be searched all the same
    assert main(["index", "support"]) == 0
    assert catalogue.describe("support", settings).state == "ready"
    record = json.loads((settings.home / "indexes" / "support" / "current.json").read_text())
    assert record["source"]["path"] == str(second)


def test_a_built_in_name_is_still_no_name_for_another_source(
    checkouts: tuple[Path, Path], source: Path, settings: Settings
) -> None:
    with pytest.raises(BadInput, match="the name of a built-in corpus"):
        index.build("support", source, settings=settings)


@pytest.mark.parametrize(
    ("content", "why"),
    [(bytes(range(256)), "not UTF-8 text"), (b"a = [", "not valid TOML")],
)
def test_a_settings_file_that_is_none_is_named(
    tmp_path: Path,
    content: bytes,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    file = tmp_path / "routescope.toml"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=f"routescope.toml.*{why}") as caught:
        module.load()
    assert str(file) in str(caught.value)
    monkeypatch.setattr(module, "current", module.load)
    assert main(["corpora"]) == 2
    assert str(file) in capsys.readouterr().err
