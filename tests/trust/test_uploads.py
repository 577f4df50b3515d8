"""Files from visitors: too large, packed to burst, named to escape, or made to run when they are read."""

import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from core.backends import fusion_weights
from core.corpus import uploads
from core.corpus.endings import READ
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import PROJECT, Settings
from core.domain.types import Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk, exchange
from core.store import Store
from core.store.exchange import MAX_MEMBER

pytestmark = pytest.mark.trust
MORE = (".pkl", ".npy", ".pt", ".joblib")  # endings that no document has


class Touch:
    """Pickled, it makes a file when it is read as a pickle."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home", embedder="hash")


@pytest.fixture
def traps(tmp_path):
    """Files that make `sprung` when anything reads them as a pickle, by kind."""
    sprung = tmp_path / "sprung"
    data = pickle.dumps(Touch(sprung))
    array, packed = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([Touch(sprung)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.pkl", data)
        archive.writestr("runs/00000.json", data)
        archive.writestr("manifest.json", data)
    pickle.loads(data)
    assert sprung.exists()  # it is a trap
    sprung.unlink()
    return sprung, {"pickle": data, "array": array.getvalue(), "zip": packed.getvalue()}


@pytest.mark.parametrize("kind", ["pickle", "array", "zip"])
def test_no_file_of_a_visitor_is_read_as_a_pickle(settings, traps, tmp_path, kind):
    sprung, made = traps
    data = made[kind]
    labelled = Store(tmp_path / "labels.sqlite")
    desk.create(labelled, "Set", "support", [Question("q", Query("What of it?"))])
    readers = [
        *(lambda name=f"a{ending}": uploads.add("mine", {name: data}, settings) for ending in (*READ, *MORE)),
        lambda: Store(tmp_path / "new.sqlite").import_bundle(data),
        lambda: exchange.import_table(labelled, "Set", data, "labels.csv"),
        lambda: exchange.import_qrels(labelled, "Set", data, "qrels", "Ann", {}),
    ]
    refused = []
    for read in readers:
        try:
            read()
        except BadInput as error:
            refused.append(str(error))
    assert len(refused) > len(MORE)
    assert [told for told in refused if "\n" in told or len(told) > 2000] == []
    assert not sprung.exists()


def test_weights_and_index_arrays_are_never_pickles(traps, settings, tmp_path):
    sprung, made = traps
    folder = settings.home / "learned" / "tiny"
    folder.mkdir(parents=True)
    (folder / "some.json").write_bytes(made["pickle"])
    with pytest.raises(Unavailable, match="cannot be used"):
        fusion_weights.read(settings.home, "tiny", "some")
    with pytest.raises(ValueError, match="allow_pickle=False"):
        np.load(io.BytesIO(made["array"]), allow_pickle=False)
    assert not sprung.exists()
    code = [path for path in (PROJECT / "core").rglob("*.py") if "np.load(" in path.read_text()]
    for path in code:
        assert path.read_text().count("np.load(") == path.read_text().count("allow_pickle=False"), path


def test_a_bundle_that_bursts_is_refused_before_it_is_unpacked(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": "routescope-sessions", "version": 1}))
        archive.writestr("runs/00000.json", b" " * (MAX_MEMBER + 1))
    assert len(out.getvalue()) < MAX_MEMBER // 500
    store = Store(tmp_path / "sessions.sqlite")
    with pytest.raises(BadInput, match="too large; at most"):
        store.import_bundle(out.getvalue())
    for packed in (gzip.compress(b"x" * 10**6), out.getvalue()[:-50], b"PK\x03\x04" + b"\x00" * 1000):
        with pytest.raises(BadInput):
            store.import_bundle(packed)
    assert store.count() == 0


def test_an_upload_that_is_too_much_is_one_line_and_nothing_is_kept(settings):
    too_deep = b'{"id": "a", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for files in ({"a.jsonl": too_deep}, {"a.pdf": b"%PDF-1.7\n" + b"(" * 10**5}, {"a.txt": b" " * 10**7}):
        with pytest.raises(BadInput) as caught:
            uploads.add("mine", files, settings)
        assert len(str(caught.value).splitlines()) == 1
        assert len(str(caught.value)) < 2000
    assert not uploads.folder("mine", settings).exists()


def test_no_name_of_a_corpus_a_file_or_an_evaluation_leads_out_of_home(engine, visit):
    named = {"evaluate.py": "evaluation", "corpus.py": "corpus", "label.py": "set", "tune.py": "evaluation"}
    for page, name in named.items():
        for path in ("../../../etc/passwd", "/etc/passwd", "..", "a/b", "C:\\x", "a\x00b"):
            assert not visit(page, **{name: path}).exception
    assert {path.name.partition("-")[0] for path in engine.settings.home.rglob("*")} == {"runs.sqlite"}
