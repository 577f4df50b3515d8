"""A lock between processes that can be waited for, and given up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.domain.errors import Cancelled

LOOK_S = 0.2


@contextmanager
def alone(file: Path, cancel: threading.Event) -> Iterator[None]:
    """Hold the lock `file`: two processes never build one thing at once. Raises Cancelled while waiting."""
    from filelock import FileLock, Timeout  # loads asyncio

    lock = FileLock(file)
    while not lock.is_locked:
        if cancel.is_set():
            raise Cancelled("stopped while waiting for another process that builds this corpus")
        try:
            lock.acquire(timeout=LOOK_S)
        except Timeout:
            continue
    try:
        yield
    finally:
        lock.release()
