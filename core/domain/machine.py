"""The machine that times were measured on, in words."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache

from core.domain import system


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine a time was measured on."""

    kind: str  # processor and system, for readers
    host: str  # name that distinguishes machines of one kind


def here() -> Machine:
    """Return the machine this process runs on."""
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
    """Return this machine's network name."""
    return platform.node() or "unnamed"


def processor() -> str:
    """Return the processor's name, or its architecture if the system does not report a name."""
    return system.processor() or platform.processor() or platform.machine()
