"""The packages beyond the light set, which load models other than the default embedder.

`python -m core.domain.full_set [--any-torch]` installs them into the running environment, one process at a
time. A dashboard may run meanwhile: whatever is installed keeps its version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from core.domain.errors import Unavailable
from core.domain.program import INSTALLED, PROJECT
from core.domain.system import LINUX

LIGHT, FULL = PROJECT / "requirements-light.txt", PROJECT / "requirements.txt"
HOW = "pip install 'routescope[full]'" if INSTALLED else "make full"
LOCK = Path(sys.prefix) / ".routescope-full.lock"  # held while packages are installed
MARK = Path(sys.prefix) / ".routescope-full"  # holds what requirements.txt was when all of it was installed
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
FIRST = "xllamacpp"  # the language model waits for it, and it needs none of the others
GPU_PARTS = ("nvidia-", "cuda-", "triton")  # what a torch for GPUs brings
NOT_LOADED = ("pip", "routescope", "setuptools")  # may change; torch wants a newer setuptools than venv has
TORCH_ARGS = "TORCH_ARGS"  # variable: options for pip, such as the index of a torch for GPUs
WAIT_S = 3600.0  # for another process that installs


def pins(file: Path) -> dict[str, str]:
    """Return the pinned version of each package in a requirements file."""
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def differing(file: Path) -> dict[str, str | None]:
    """Return the installed version, or None, of each package that is not installed as the file pins it."""
    found = {name: _installed(name) for name in pins(file)}
    return {name: have for name, have in found.items() if (have or "").split("+")[0] != pins(file)[name]}


def complete() -> bool:
    """Return True if all of requirements.txt is installed."""
    wanted = FULL.read_text(encoding="utf-8")
    if MARK.is_file() and MARK.read_text(encoding="utf-8") == wanted:
        return True
    return None not in differing(FULL).values()


def own_environment() -> bool:
    """Return True if this checkout made the running environment, so that it may add packages to it."""
    return not INSTALLED and Path(sys.prefix).resolve() == (PROJECT / ".venv").resolve()


def require() -> None:
    """Raise Unavailable if sentence-transformers is not installed, or is being installed."""
    if under_way():
        raise Unavailable("sentence-transformers is being installed; ask again when it is there")
    if find_spec("sentence_transformers") is None:
        raise Unavailable(f"sentence-transformers is not installed; run: {HOW}")


def under_way() -> bool:
    """Return True while a process installs packages here."""
    if not LOCK.exists():
        return False
    try:
        with FileLock(LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # an environment that this user may only read
        return False


def install(*, any_torch: bool) -> None:
    """Install what is missing with pip, whose output goes to stdout. Raises Unavailable.

    A torch for GPUs is installed only if `any_torch`, or if TORCH_ARGS asks for it.
    """
    with FileLock(LOCK, timeout=WAIT_S):
        if not complete():
            with tempfile.TemporaryDirectory() as scratch:
                kept = Path(scratch) / "constraints.txt"
                kept.write_text(_constraints(), encoding="utf-8")
                _pip("--constraint", str(kept), f"{FIRST}=={pins(FULL)[FIRST]}")
                if _installed("torch") is None:
                    _torch(["--constraint", str(kept)], any_torch=any_torch)
                if _pip("--constraint", str(kept), "--requirement", str(FULL)):
                    raise Unavailable("the packages of requirements.txt could not be installed; see above")
        MARK.write_text(FULL.read_text(encoding="utf-8"), encoding="utf-8")


def _torch(options: list[str], *, any_torch: bool) -> None:
    """Install torch: as TORCH_ARGS says, else built for processors, from PyTorch's index or pip's."""
    pin = f"torch=={pins(FULL)['torch']}"
    if asked := os.environ.get(TORCH_ARGS, "").split():
        if _pip(*options, *asked, pin):
            raise Unavailable("torch could not be installed; see above")
        return
    quick = ["--index-url", CPU_INDEX, "--retries", "0", "--timeout", "10"]
    for source in (quick, []) if LINUX else ([],):
        brought = _brought(*options, *source, pin)
        light = brought and not any(name.startswith(GPU_PARTS) for name in brought)
        if light and not _pip(*options, *source, pin):
            return
    if not any_torch or _pip(*options, pin):
        raise Unavailable(
            f"no torch for processors was found; with an index of such builds, or for GPU builds, run:"
            f" make full {TORCH_ARGS}='--index-url ADDRESS'"
        )


def _brought(*arguments: str) -> list[str]:
    """Return the names of the packages that pip would install; [] if it cannot."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        return []
    planned: dict[str, Any] = json.loads(done.stdout)
    return [part["metadata"]["name"].lower() for part in planned["install"]]


def _pip(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pip", "install", *arguments], check=False).returncode


def _constraints() -> str:
    """Return a line for each installed package: a running process may have loaded any of them."""
    found = {one.name: one.version for one in distributions() if one.name not in NOT_LOADED}
    return "".join(f"{name}=={have}\n" for name, have in sorted(found.items()))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    try:
        install(any_torch="--any-torch" in sys.argv[1:])
    except (Unavailable, Timeout, OSError) as error:
        sys.exit(f"error: {error}")
