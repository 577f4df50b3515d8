"""The machine that times were measured on, in words."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a time was measured: the machine's `kind`, in words, and the `host` that tells it from others of
    that kind.
    """

    kind: str
    host: str


def here() -> Machine:
    """The machine that this process runs on."""
    return Machine(machine(), host())


@cache
def machine() -> str:
    """Processor, cores, memory, system and Python."""
    import psutil

    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


@cache
def host() -> str:
    """This machine's name in its network: it tells machines of one kind apart."""
    return platform.node() or "unnamed"


def processor() -> str:
    """The processor's name; where the system does not tell it, its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
