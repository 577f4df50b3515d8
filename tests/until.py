"""Waits for a state that threads bring about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE_S = 30.0


def until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until something is so; an assertion that fails says that it never came to be."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, "it never came to be"
        threading.Event().wait(0.002)
