"""The machine that times were measured on, in words."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Processor, cores, memory, system and Python."""
    import psutil

    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


def processor() -> str:
    """The processor's name; where the system does not tell it, its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
