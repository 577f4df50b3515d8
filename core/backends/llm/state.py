"""The state that a running model server publishes to the user's other programs, in a small file only they can
read.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from core.domain.errors import Unavailable

Phase = Literal["off", "starting", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of the embedded server."""

    phase: Phase  # "off" (can be started), "starting", "loading", "ready" or "failed"
    detail: str = ""
    pid: int = 0
    # the process's own start time, which distinguishes it from a later process with the same number
    began: float = 0.0
    since: float = 0.0  # start of the phase (Unix time)
    url: str = ""
    key: str = field(default="", repr=False)  # gives access to the server and is never shown

    @property
    def seconds(self) -> float:
        """Return the seconds since this phase began."""
        return max(0.0, time.time() - self.since) if self.since else 0.0

    def enter(self, phase: Phase, **facts: str) -> ServerState:
        """Return the same server in another phase."""
        return replace(self, phase=phase, since=time.time(), **facts)  # type: ignore[arg-type]


OFF = ServerState("off")


def ours(detail: str = "") -> ServerState:
    """Return the initial state of a server in this process."""
    import psutil

    return ServerState("starting", detail, os.getpid(), psutil.Process().create_time(), time.time())


def read(path: Path) -> ServerState:
    """Read the state in the file; `OFF` if it is missing, its process has ended, or another user owns it."""
    try:
        with path.open() as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return replace(OFF, detail=f"{path} belongs to another user")
            state = ServerState(**json.load(file))
    except FileNotFoundError:
        return OFF
    except (OSError, ValueError, TypeError) as error:
        return replace(OFF, detail=f"{path}: {error}")
    return state if state.phase == "failed" or alive(state) else replace(OFF, detail="the last server died")


def alive(state: ServerState) -> bool:
    """Return True if the process that wrote `state` is still running."""
    import psutil

    try:
        process = psutil.Process(state.pid)
        if abs(process.create_time() - state.began) > 1.5:  # the clock it is derived from may be adjusted
            return False
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def write(path: Path, state: ServerState) -> None:
    """Replace the file in one step, with mode 0600 from its first byte."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mkstemp makes it 0600
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(state), file)
    os.replace(name, path)


def folder(models_dir: Path) -> Path:
    """Create the folder of the state files with mode 0700 and return it. Raises Unavailable on failure."""
    path = models_dir / "run"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot keep the model server's state in {path}: {error}") from None
    return path
