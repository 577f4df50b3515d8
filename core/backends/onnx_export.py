"""Writes a sentence-transformers model as one ONNX file, in a process of its own: torch leaves with it.

`python -m core.backends.onnx_export MODEL_FOLDER OUT_FILE [embedding | int8 | tokens]` prints one line of
JSON: sha256, bytes, cosine.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from core.backends.onnx_store import Kind

OUTPUTS: dict[Kind, str] = {"embedding": "sentence_embedding", "tokens": "token_embeddings"}
# Lowest cosine to sentence-transformers, of any sentence below, at which the export is accepted.
SAME: dict[Kind, float] = {"embedding": 0.99999, "int8": 0.98, "tokens": 0.99999}
# Layers that stay float32: rounding them costs most (of all 36 products one at a time, on passages of
# Wikipedia: mean cosine .9939 with none of them left out, .9952 with these two).
UNQUANTISED_NODES = tuple(f"/model/model.0/encoder/layer.{layer}/output/dense/MatMul" for layer in (0, 2))
SENTENCES = (
    "a",
    "How do I start a return?",
    "The idempotency key is stored for 24 hours; a repeat within that time gets the first answer.",
    "Größe, naïve café, 東京 and 🎉 are all text.",
    "def search(self, vector: Vector, k: int) -> Rows: ...",
    "A long passage is cut after 256 tokens. " * 60,
)


def export(model_folder: Path, out: Path, kind: Kind = "embedding") -> dict[str, Any]:
    """Write `out` and return what to record of it; raises ValueError when it disagrees with the model.

    Inputs are input_ids and attention_mask (n, tokens). An embedding has pooling and normalisation inside:
    the output is (n, dim); that of tokens is (n, tokens, dim).
    """
    if kind == "int8":
        with tempfile.TemporaryDirectory() as scratch:
            whole = Path(scratch) / "model.onnx"
            export(model_folder, whole)
            _quantise(whole, out)
        from sentence_transformers import SentenceTransformer

        return _accepted(
            _agreement(SentenceTransformer(str(model_folder), device="cpu"), model_folder, out), out, kind
        )
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder), device="cpu").eval()

    class Embed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            embedded: torch.Tensor = self.model({"input_ids": input_ids, "attention_mask": attention_mask})[
                OUTPUTS[kind]
            ]
            return embedded

    pooled = kind == "embedding"
    sample = torch.ones((2, 8), dtype=torch.long)
    free = {0: "n", 1: "tokens"}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # the tracer warns of constants; the comparison below is the real check
        torch.onnx.export(
            Embed(),
            (sample, sample),
            str(out),
            dynamo=False,
            opset_version=17,
            input_names=["input_ids", "attention_mask"],
            output_names=[kind],
            dynamic_axes={"input_ids": free, "attention_mask": free, kind: {0: "n"} if pooled else free},
        )
    return _accepted((_agreement if pooled else _token_agreement)(model, model_folder, out), out, kind)


def _quantise(whole: Path, out: Path) -> None:
    """Weights of 8 bits for each output channel; activations are rounded as they come.

    Seven of the eight bits are used: with all of them processors without VNNI add up beyond 16 bits.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    known = {node.name for node in onnx.load(str(whole)).graph.node}
    if absent := [name for name in UNQUANTISED_NODES if name not in known]:
        raise ValueError(f"the exported model has no {absent[0]}; the names of its layers have changed")
    quantize_dynamic(
        str(whole),
        str(out),
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=list(UNQUANTISED_NODES),
    )


def _accepted(cosine: float, out: Path, kind: Kind) -> dict[str, Any]:
    if cosine < SAME[kind]:
        raise ValueError(
            f"the export differs from the model: cosine {cosine:.7f}, at least {SAME[kind]} is asked for"
        )
    return {
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "bytes": out.stat().st_size,
        "cosine": cosine,
    }


def _agreement(model: Any, model_folder: Path, out: Path) -> float:
    """Return the lowest cosine between both models, for each sentence alone and all in one padded batch."""
    from core.backends.embedder import OnnxEmbedder

    ours = OnnxEmbedder(model_folder.name, model_folder, out)
    expected = model.encode(list(SENTENCES), normalize_embeddings=True)
    alone = np.stack([ours.embed_query(text) for text in SENTENCES])
    return float(min((alone * expected).sum(1).min(), (ours.embed(SENTENCES) * expected).sum(1).min()))


def _token_agreement(model: Any, model_folder: Path, out: Path) -> float:
    """Return the lowest cosine of any token between both models, for each sentence alone and all in one
    padded batch.
    """
    from core.backends.late import MiniLMTokens

    ours = MiniLMTokens(model_folder, out)
    expected = [model.encode(text, output_value="token_embeddings").numpy() for text in SENTENCES]
    found = [*(ours.hidden([text])[0] for text in SENTENCES), *ours.hidden(SENTENCES)]
    return float(min(_cosine(a, b).min() for a, b in zip(found, expected * 2, strict=True)))


def _cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


if __name__ == "__main__":
    asked: Kind = next((kind for kind in SAME if [kind] == sys.argv[3:]), "embedding")
    sys.stdout.write(json.dumps(export(Path(sys.argv[1]), Path(sys.argv[2]), asked)) + "\n")
