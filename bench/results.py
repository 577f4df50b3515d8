"""Where figures are kept, and what they have in common."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from core.domain.machine import processor
from core.domain.settings import PROJECT

OUT = PROJECT / "bench" / "results.json"


def machine() -> dict[str, Any]:
    """What figures come from."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def spread(values: list[float]) -> dict[str, float]:
    """Minimum, median and maximum."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values), "n": len(values)}


def timed(work: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds of each of several calls, after one that does not count."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append((time.perf_counter() - began) * 1000)
    return found


def kept() -> dict[str, Any]:
    """The figures of each part that were kept last; none without a file."""
    found: dict[str, Any] = json.loads(OUT.read_text()) if OUT.exists() else {}
    return found


def keep(part: str, figures: Mapping[str, Any]) -> None:
    """Put the figures of `part` in the place of its last ones; the other parts keep theirs."""
    OUT.write_text(json.dumps({**kept(), part: figures}, indent=2) + "\n")
