"""Who writes a run, so that one left "running" by a dead process is told from one that runs."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import cache
from sqlite3 import Row

SILENT_S = 900.0  # a run on another machine is taken for dead after this long without a sign of it
SAME_S = 2.0  # start times of one process as two others read them may differ by this much


@dataclass(frozen=True, slots=True)
class Owner:
    """The process a run runs in; `born` is when it began, since process ids are used again."""

    host: str
    pid: int
    born: float  # seconds since 1970


def me() -> Owner:
    """This process."""
    return _owner(os.getpid())


@cache
def _owner(pid: int) -> Owner:
    import psutil

    return Owner(socket.gethostname(), pid, psutil.Process(pid).create_time())


def alive(host: str | None, pid: int | None, born: float | None, saved: float | None) -> bool:
    """Whether the owner noted with a running run can still be at it; `saved` is when it last wrote."""
    if host is None or pid is None or born is None or saved is None:
        return False
    if host != socket.gethostname():
        return time.time() - saved < SILENT_S
    import psutil

    try:
        return abs(float(psutil.Process(pid).create_time()) - born) < SAME_S
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True  # it is there; its start time is not for us to see


def status_now(row: Row) -> str:
    """A run's status from its row (status, host, pid, born, saved)."""
    if row["status"] == "running" and not alive(row["host"], row["pid"], row["born"], row["saved"]):
        return "interrupted"
    return str(row["status"])
