"""What a running model server tells the other programs of its user: a small file that only they can read."""

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
    """Where the embedded server is: "off" (can be started), "starting", "loading", "ready" or "failed".

    `began` is the process's own start time, so that a later process with the same number is not taken for it.
    `since` is when the phase began (Unix time). `key` opens the server and is never shown.
    """

    phase: Phase
    detail: str = ""
    pid: int = 0
    began: float = 0.0
    since: float = 0.0
    url: str = ""
    key: str = field(default="", repr=False)

    @property
    def seconds(self) -> float:
        """How long this phase has lasted."""
        return max(0.0, time.time() - self.since) if self.since else 0.0

    def enter(self, phase: Phase, **facts: str) -> ServerState:
        """The same server in its next phase."""
        return replace(self, phase=phase, since=time.time(), **facts)  # type: ignore[arg-type]


OFF = ServerState("off")


def ours(detail: str = "") -> ServerState:
    """The state of a server that this process is about to be."""
    import psutil

    return ServerState("starting", detail, os.getpid(), psutil.Process().create_time(), time.time())


def read(path: Path) -> ServerState:
    """The state in the file; `OFF` when there is none, its process is gone, or it is somebody else's."""
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
    """Whether the very process that wrote `state` still runs."""
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
    """The folder of the state files, made with mode 0700. Raises Unavailable when it cannot be made."""
    path = models_dir / "run"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot keep the model server's state in {path}: {error}") from None
    return path
