"""A damaged or foreign corpus is an entry with its state and the way out; the others never notice."""

import json
import shutil

import pytest

from core.cli import main
from core.corpus import catalogue, index, uploads
from core.corpus.chunk import Chunking
from core.corpus.source import Source
from core.domain import settings as module
from core.domain.errors import BadInput
from tests.damage import COPIED, DAMAGES, damage_all


@pytest.fixture
def settings(settings, at_once, monkeypatch):
    monkeypatch.setattr(module, "current", lambda: settings)
    return settings


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.md").write_text("# Returns\n\nSend the parcel back within thirty days.")
    return folder


def test_every_damaged_corpus_is_listed_with_what_is_wrong_and_what_to_do(source, settings):
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
def test_every_damaged_corpus_can_be_built_again_or_deleted(source, settings):
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


def test_a_copy_of_a_corpus_is_built_under_its_own_name_when_it_is_opened(source, settings):
    damage_all(source, settings)
    copy = index.open_corpus(COPIED, settings=settings)
    assert (copy.name, index.open_corpus("good", settings=settings).name) == (COPIED, "good")
    assert "is of corpus 'good'" in copy.warnings[0]


def test_uploaded_files_are_found_again_when_the_record_is_lost(settings):
    uploads.add("mine", {"a.txt": b"Some words."}, settings)
    index.build("mine", uploads.folder("mine", settings), settings=settings)
    DAMAGES["empty-record"](settings.home / "indexes" / "mine")
    known = catalogue.describe("mine", settings)
    assert known.state == "damaged"
    assert known.reason.endswith("Build it again: python -m core index mine")
    index.build("mine", "mine", settings=settings)
    assert catalogue.describe("mine", settings).state == "ready"


def test_the_index_of_another_copy_of_the_program_is_told_and_taken_over(
    source, tmp_path, settings, monkeypatch
):
    first, second = (tmp_path / name / "documents" for name in ("first", "second"))

    def run_from(documents):
        shutil.copytree(source, documents)
        standard = Source("support", "built-in", documents, Chunking(), title="A shop")
        monkeypatch.setattr(catalogue, "BUILT_IN", {"support": standard})

    run_from(first)
    index.build(None, "support", settings=settings)
    assert catalogue.describe("support", settings).state == "ready"
    with pytest.raises(BadInput, match="the name of a built-in corpus"):
        index.build("support", source, settings=settings)
    run_from(second)
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


@pytest.mark.parametrize(
    ("content", "why"), [(bytes(range(256)), "not UTF-8 text"), (b"a = [", "not valid TOML")]
)
def test_a_settings_file_that_is_none_is_named(tmp_path, content, why, monkeypatch, capsys):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    (tmp_path / "routescope.toml").write_bytes(content)
    with pytest.raises(BadInput, match=f"{tmp_path}/routescope.toml.*{why}"):
        module.load()
    monkeypatch.setattr(module, "current", module.load)
    assert main(["corpora"]) == 2
    assert str(tmp_path / "routescope.toml") in capsys.readouterr().err
