"""The optimised copies of exported models: the same results, checked, and done without where need be."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.backends import onnx_session


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Looks up a vector for each token and takes out those that the mask leaves out."""
    weights = np.random.default_rng(1).standard_normal((1100, 8)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["found"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["found", "wide"], ["out"]),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"])
        for name in ("input_ids", "attention_mask")
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        given,
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", "t", 8])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.array([-1]), "last")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(tmp_path / "model.onnx"))
    return tmp_path / "model.onnx"


def test_a_copy_gives_the_same_bits_from_weights_in_a_file_of_their_own(model: Path) -> None:
    copy = onnx_session.optimise(model)
    assert copy == onnx_session.copy_of(model)
    assert copy.with_suffix(".weights").stat().st_size >= 1100 * 8 * 4
    ids = np.array([[5, 900, 3]])
    given = {"input_ids": ids, "attention_mask": np.array([[1, 0, 1]])}
    ours, theirs = (onnx_session.open_session(file, 1).run(None, given)[0] for file in (copy, model))
    assert np.array_equal(ours, theirs)
    assert ours[0, 0].any()
    assert not ours[0, 1].any()


def test_only_a_copy_that_is_as_it_was_made_is_sound(model: Path) -> None:
    copy = onnx_session.copy_of(model)
    assert not onnx_session.sound(copy)
    onnx_session.optimise(model)
    assert onnx_session.sound(copy)
    weights = copy.with_suffix(".weights")
    os.utime(weights, ns=(1, 1))  # read again, and found the same
    assert onnx_session.sound(copy)
    content = bytearray(weights.read_bytes())
    content[10] ^= 1
    weights.write_bytes(content)
    assert not onnx_session.sound(copy)
    for record in ("", "[]", "{}", "null"):
        copy.with_suffix(".json").write_text(record)
        assert not onnx_session.sound(copy)


def test_a_copy_with_other_results_is_not_used(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_session.np, "array_equal", lambda one, other: one is other)
    assert onnx_session.optimise(model) == model
    assert [file.name for file in model.parent.iterdir()] == [model.name]


def test_where_no_copy_can_be_written_the_model_itself_is_used(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert onnx_session.optimise(model) == model
