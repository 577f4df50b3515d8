"""Starts, finds and stops the embedded server: one for all of a user's programs that ask for one model.

A running server publishes its state to them in a small file that only the user can read.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from core.domain import system
from core.domain.errors import Cancelled, ModelTimedOut, Unavailable
from core.domain.program import PROJECT

log = logging.getLogger(__name__)
POLL_S = 0.03
SPAWN_S = 30.0  # a process that says nothing for so long is given up
RETRY_AFTER_S = 10.0  # a server that could not start is not tried again before
Phase = Literal["off", "starting", "loading", "ready", "failed"]
_children: list[subprocess.Popen[bytes]] = []  # kept so that an ended one is reaped, not left a zombie


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
        with path.open(encoding="utf-8") as file:
            if not system.is_ours(file):
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
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
    system.replace(name, path)


def folder(models_dir: Path) -> Path:
    """Create the folder of the state files with mode 0700 and return it. Raises Unavailable on failure."""
    path = models_dir / "run"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot keep the model server's state in {path}: {error}") from None
    return path


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """The server of one model file with one context length; holds no connection and no process."""

    name: str
    model: Path
    models_dir: Path
    context: int
    idle_minutes: float
    sha256: str = ""

    def state(self) -> ServerState:
        """Return the server's state; reads one small file."""
        _reap()
        return read(self._file("json"))

    def start(self) -> ServerState:
        """Start it unless it runs; returns at once with the phase it is in. Raises Unavailable."""
        from filelock import FileLock, Timeout

        folder(self.models_dir)
        try:
            with FileLock(self._file("lock"), timeout=SPAWN_S):
                found = self.state()
                waits = found.phase == "failed" and found.seconds < RETRY_AFTER_S
                return self._spawn() if found.phase in ("off", "failed") and not waits else found
        except Timeout:
            raise Unavailable(f"another program has been starting {self.name} for {SPAWN_S:g} s") from None

    def ready(self, *, deadline: float, cancel: threading.Event) -> ServerState:
        """Start the server if necessary and wait until it is ready; `deadline` is on time.monotonic().

        Raises Unavailable with the server's own reason, ModelTimedOut, Cancelled.
        """
        found = self.state()
        if found.phase != "ready":
            found = self.start()
        while found.phase in ("starting", "loading"):
            if cancel.wait(POLL_S):
                raise Cancelled(f"stopped while {self.name} was loading")
            if time.monotonic() > deadline:
                raise ModelTimedOut(f"embedded {self.name} was still {found.phase} at the call's deadline")
            found = self.state()
        if found.phase != "ready":
            raise Unavailable(f"embedded {self.name} did not start: {found.detail}{self.last_words()}")
        return found

    def stop(self) -> None:
        """End the server, for all who use it."""
        import psutil

        found = self.state()
        if found.phase in ("off", "failed"):
            return
        try:
            process = psutil.Process(found.pid)
            process.terminate()
            process.wait(3)
        except psutil.TimeoutExpired:
            process.kill()
        except psutil.NoSuchProcess:
            log.info("the server of %s had ended already", self.name)
        self._file("json").unlink(missing_ok=True)
        _reap()

    def _spawn(self) -> ServerState:
        state_file = self._file("json")
        state_file.unlink(missing_ok=True)
        given = json.dumps({**asdict(self), "state": str(state_file)}, default=str)
        command = [sys.executable, "-m", "core.backends.llm.server", given]
        handle = os.open(self._file("log"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            child = subprocess.Popen(
                command,
                cwd=PROJECT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                **system.OWN_SESSION,  # it outlives the program that started it, until it is idle
            )
        finally:
            os.close(handle)
        _children.append(child)
        while (found := read(state_file)).phase == "off":
            if child.poll() is not None:
                return OFF.enter("failed", detail=f"its process exited with code {child.returncode}")
            time.sleep(POLL_S)
        return found

    def _file(self, suffix: str) -> Path:
        name = re.sub(r"[^\w.-]", "_", f"{self.name}-{self.context}")
        return self.models_dir / "run" / f"{name}.{suffix}"

    def last_words(self) -> str:
        """Return the end of the server's log in brackets, or ""."""
        try:
            lines = self._file("log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return f" (its log ends: {lines[-1][:200]})" if lines else ""


def _environment() -> dict[str, str]:
    """Return this program's environment without secrets and without thread counts meant for other libraries.

    Threads of llama.cpp that wait for each other sleep after a short spin: with the default long one, two
    threads on two busy cores generate 1 to 2 tokens a second instead of 15 to 22 (0.5B model, load 9).
    """
    ours = re.compile(r"(OMP_|OPENAI_|ROUTESCOPE_)|.*(KEY|TOKEN|SECRET|PASSWORD)", re.IGNORECASE)
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return {"GOMP_SPINCOUNT": "1000"} | kept


def _reap() -> None:
    _children[:] = [child for child in _children if child.poll() is None]
