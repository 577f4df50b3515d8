"""The process that writes a run, which distinguishes a running run from one left by a dead process."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import cache
from sqlite3 import Row

from core.domain.system import boot_id, since_boot

SILENT_S = 900.0  # a run on another machine is taken for dead after this long without a sign of it
SAME_S = 2.0  # start times of one process as two others read them may differ by this much


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that runs a run.

    On Linux `born` counts seconds since the boot `boot`, so that no change of the clock affects it. Elsewhere
    `born` counts from 1970: setting the clock by more than `SAME_S` during a run may make it look
    interrupted.
    """

    host: str
    pid: int
    born: float  # start of the process, since process ids are reused
    boot: str | None = None  # the machine's boot id; None except on Linux


def me() -> Owner:
    """Return this process as an owner."""
    return _owner(os.getpid())


@cache
def _owner(pid: int) -> Owner:
    boot = boot_id()
    born = _by_clock(pid) if boot is None else since_boot(pid)
    return Owner(socket.gethostname(), pid, born, boot)


def alive(
    host: str | None, pid: int | None, born: float | None, saved: float | None, boot: str | None = None
) -> bool:
    """Return True if the owner of a running run may still be running; `saved` is when it last wrote."""
    if host is None or pid is None or born is None or saved is None:
        return False
    if host != socket.gethostname():
        return time.time() - saved < SILENT_S
    if boot is not None and boot != boot_id():
        return False  # the machine has restarted since
    try:
        now = _by_clock(pid) if boot is None else since_boot(pid)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it is there; its start is not for us to see
    return abs(now - born) < SAME_S


def status_now(row: Row) -> str:
    """Return a run's status from its row (status, host, pid, born, saved, boot)."""
    if row["status"] == "running" and not alive(*(row[c] for c in ("host", "pid", "born", "saved", "boot"))):
        return "interrupted"
    return str(row["status"])


def _by_clock(pid: int) -> float:
    """When a process began, in seconds since 1970; ProcessLookupError, PermissionError."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        raise ProcessLookupError(f"there is no process {pid}") from None
    except psutil.AccessDenied:
        raise PermissionError(f"process {pid} is hidden") from None
