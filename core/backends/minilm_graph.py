"""The ONNX graph of all-MiniLM-L6-v2, built from its published weights with onnx and numpy alone.

Source: Devlin et al. 2019, "BERT", arXiv:1810.04805; Wang et al. 2020, "MiniLM", arXiv:2002.10957.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.onnx_text import OnnxText
from core.domain.program import PROJECT

FOLDER = PROJECT / "data" / "minilm"  # all of the model but its weights
# One unit vector a text, the same by weights of 8 bits, or the last hidden state of each token.
Kind = Literal["embedding", "int8", "tokens"]
LAYERS, HEADS, WIDTH = 6, 12, 384
OPSET, IR = 17, 8
EPSILON = 1e-12  # of the layer normalisations
# Lowest cosine to the stored vectors of any sentence below at which a built model is accepted.
SAME: dict[Kind, float] = {"embedding": 0.99999, "int8": 0.98, "tokens": 0.99999}
# Layers that stay float32: rounding them costs most (of all 36 products one at a time, on passages of
# Wikipedia: mean cosine .9939 with none of them left out, .9952 with these two).
UNQUANTISED_NODES = tuple(f"encoder.layer.{layer}.output.dense" for layer in (0, 2))
REFERENCE = FOLDER / "reference.npy"  # the sentences' vectors by sentence-transformers, shape (n, 384)
SENTENCES = (
    "a",
    "How do I start a return?",
    "The idempotency key is stored for 24 hours; a repeat within that time gets the first answer.",
    "Größe, naïve café, 東京 and 🎉 are all text.",
    "def search(self, vector: Vector, k: int) -> Rows: ...",
    "A long passage is cut after 256 tokens. " * 60,
)


def build(weights: Path, out: Path, kind: Kind) -> float:
    """Write the model to `out`; return its lowest cosine to the stored vectors. Raises ValueError if too low.

    Inputs are input_ids and attention_mask (n, tokens). An embedding has pooling and normalisation inside:
    the output is (n, 384); that of tokens is (n, tokens, 384).
    """
    import onnx

    tensors = read_safetensors(weights)
    if kind == "int8":
        whole = out.with_name("whole.onnx")
        onnx.save(_Graph(tensors).model("embedding"), str(whole))
        _quantise(whole, out)
    else:
        onnx.save(_Graph(tensors).model(kind), str(out))
    cosine = _agreement(out, kind)
    if cosine < SAME[kind]:
        raise ValueError(f"cosine {cosine:.7f} to the stored vectors; at least {SAME[kind]} is required")
    return cosine


def read_safetensors(file: Path) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors of a safetensors file, mapped into memory, by name.

    Source: https://huggingface.co/docs/safetensors, "Format".
    """
    size = int.from_bytes(file.open("rb").read(8), "little")
    header = json.loads(file.open("rb").read(8 + size)[8:])
    data = np.memmap(file, np.uint8, "r", offset=8 + size)
    return {
        name: data[slice(*entry["data_offsets"])].view(np.float32).reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


class _Graph:
    """A BERT encoder as ONNX nodes. Each method adds nodes and returns the name of their output."""

    def __init__(self, tensors: dict[str, NDArray[np.float32]]) -> None:
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def model(self, kind: Kind) -> Any:
        """Return the ModelProto whose output is `kind`: "embedding" or "tokens"."""
        from onnx import TensorProto, checker, helper, numpy_helper

        tokens = self._encoded()
        free: dict[Kind, tuple[str | int, ...]] = {
            "embedding": ("n", WIDTH),
            "tokens": ("n", "tokens", WIDTH),
        }
        self._add("Identity", [self._pooled(tokens) if kind == "embedding" else tokens], kind)
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ("n", "tokens"))
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info(kind, TensorProto.FLOAT, free[kind])],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        checker.check_model(made)
        return made

    def _encoded(self) -> str:
        """Return the last hidden states, shape (n, tokens, 384)."""
        word = self._add("Gather", [self._weight("embeddings.word_embeddings.weight"), "input_ids"], "words")
        shape = self._add("Shape", ["input_ids"], "shape")
        length = self._add("Gather", [shape, self._constant("one", np.int64(1))], "length")
        steps = [self._constant("zero", np.int64(0)), length, self._constant("one", np.int64(1))]
        at = self._add("Range", steps, "positions")
        place = self._add("Gather", [self._weight("embeddings.position_embeddings.weight"), at], "places")
        segment = self._constant("segment", self._tensors["embeddings.token_type_embeddings.weight"][0])
        both = self._add("Add", [word, place], "words and places")
        states = self._normalised(self._add("Add", [both, segment], "embeddings"), "embeddings.LayerNorm")
        seen = self._add("Cast", ["attention_mask"], "seen", to=1)
        axes = self._constant("heads and queries", np.array([1, 2]))
        hidden = self._add("Sub", [self._constant("1.0", np.float32(1)), seen], "unseen")
        lowest = self._constant("lowest", np.finfo(np.float32).min)
        mask = self._add("Mul", [self._add("Unsqueeze", [hidden, axes], "unseen keys"), lowest], "mask")
        for number in range(LAYERS):
            states = self._layer(states, mask, f"encoder.layer.{number}")
        return states

    def _layer(self, states: str, mask: str, name: str) -> str:
        query, key, value = (
            self._heads(self._dense(states, f"{name}.attention.self.{part}"), f"{name}.{part}", order)
            for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
        )
        scale = self._constant("scale", np.float32(math.sqrt(WIDTH / HEADS)))
        scores = self._add(
            "Div", [self._add("MatMul", [query, key], f"{name}.dots"), scale], f"{name}.scores"
        )
        masked = self._add("Add", [scores, mask], f"{name}.masked")
        shares = self._add("Softmax", [masked], f"{name}.shares", axis=-1)
        mixed = self._add("MatMul", [shares, value], f"{name}.mixed")
        rows = self._add("Transpose", [mixed], f"{name}.rows", perm=(0, 2, 1, 3))
        joined = self._add(
            "Reshape", [rows, self._constant("joined", np.array([0, 0, WIDTH]))], f"{name}.joined"
        )
        attended = self._dense(joined, f"{name}.attention.output.dense")
        states = self._normalised(
            self._add("Add", [attended, states], f"{name}.attention.sum"),
            f"{name}.attention.output.LayerNorm",
        )
        inner = self._gelu(self._dense(states, f"{name}.intermediate.dense"), name)
        out = self._dense(inner, f"{name}.output.dense")
        return self._normalised(self._add("Add", [out, states], f"{name}.sum"), f"{name}.output.LayerNorm")

    def _pooled(self, tokens: str) -> str:
        """Return the mean of the tokens that are seen, divided by its length, shape (n, 384)."""
        seen = self._add("Cast", ["attention_mask"], "counted", to=1)
        last = self._constant("last", np.array([-1]))
        column = self._add("Unsqueeze", [seen, last], "column")
        axis = self._constant("tokens", np.array([1]))
        total = self._add(
            "ReduceSum", [self._add("Mul", [tokens, column], "kept"), axis], "total", keepdims=0
        )
        mean = self._add("Div", [total, self._add("ReduceSum", [column, axis], "count", keepdims=0)], "mean")
        length = self._add("ReduceL2", [mean], "norm", axes=[-1], keepdims=1)
        return self._add("Div", [mean, length], "unit")

    def _heads(self, states: str, name: str, order: tuple[int, ...]) -> str:
        shape = self._constant("heads", np.array([0, 0, HEADS, WIDTH // HEADS]))
        return self._add(
            "Transpose", [self._add("Reshape", [states, shape], f"{name}.cut")], name, perm=order
        )

    def _dense(self, states: str, name: str) -> str:
        weight = self._constant(f"{name}.weight", np.ascontiguousarray(self._tensors[f"{name}.weight"].T))
        product = self._add("MatMul", [states, weight], name)
        return self._add("Add", [self._weight(f"{name}.bias"), product], f"{name}.sum")

    def _gelu(self, states: str, name: str) -> str:
        scaled = self._add(
            "Div", [states, self._constant("root", np.float32(math.sqrt(2)))], f"{name}.scaled"
        )
        erf = self._add("Erf", [scaled], f"{name}.erf")
        shifted = self._add("Add", [erf, self._constant("1.0", np.float32(1))], f"{name}.shifted")
        doubled = self._add("Mul", [states, shifted], f"{name}.doubled")
        return self._add("Mul", [doubled, self._constant("half", np.float32(0.5))], f"{name}.gelu")

    def _normalised(self, states: str, name: str) -> str:
        inputs = [states, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")]
        return self._add("LayerNormalization", inputs, name, axis=-1, epsilon=EPSILON)

    def _weight(self, name: str) -> str:
        return self._constant(name, self._tensors[name])

    def _constant(self, name: str, value: Any) -> str:
        self._constants.setdefault(name, np.asarray(value))
        return name

    def _add(self, operation: str, inputs: list[str], name: str, **attributes: Any) -> str:
        from onnx import helper

        output = name if name in ("embedding", "tokens") else f"{name}:0"
        self._nodes.append(helper.make_node(operation, inputs, [output], name, **attributes))
        return output


def _quantise(whole: Path, out: Path) -> None:
    """Round weights to 8 bits for each output channel; activations are rounded as they come.

    Seven of the eight bits are used: with all of them processors without VNNI add up beyond 16 bits.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        str(whole),
        str(out),
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=list(UNQUANTISED_NODES),
    )


def _agreement(file: Path, kind: Kind) -> float:
    """Return the lowest cosine to the stored vectors, for each sentence alone and all in one padded batch."""
    model = OnnxText(FOLDER, file)
    ids = [encoded.ids for encoded in model.encode(SENTENCES)]
    outputs = [*(model.run([one])[0] for one in ids), *model.run(ids)]
    if kind == "tokens":
        means = [states[: len(one)].mean(0) for states, one in zip(outputs, ids * 2, strict=True)]
        outputs = [mean / np.linalg.norm(mean) for mean in means]
    return float((np.stack(outputs) * np.tile(np.load(REFERENCE, allow_pickle=False), (2, 1))).sum(1).min())
