"""Process-wide limits on memory and threads, set once before other threads start."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

from core.domain import system

# Routes run side by side, and their matrix products are small. With a thread for each core OpenBLAS has them
# wait for each other: 14 routes x 96 questions took 38 s of processor time, and 13 with one thread.
THREADS = "OPENBLAS_NUM_THREADS"


PARENT = "ROUTESCOPE_PARENT"  # variable: set if stdin is a pipe that is open as long as the parent lives
LEAVE_S = 3.0  # from an orphan's interrupt to its end


def end_with_parent() -> None:
    """End this process when its parent has ended, even if the parent was killed.

    The interrupt lets running work be stored; after LEAVE_S seconds the process ends in any case.
    """
    if not os.environ.pop(PARENT, ""):
        return

    watched = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what this process starts waits for no input

    def watch() -> None:
        os.read(watched, 1)  # nothing is ever written: this returns when the other end closes
        system.interrupt()
        time.sleep(LEAVE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def settle() -> None:
    """Return freed arrays to the system, and limit matrix products to one core.

    OPENBLAS_NUM_THREADS overrides that number of threads.
    """
    system.give_back_memory()
    system.hide_environment()
    system.write_utf8()
    if THREADS not in os.environ:
        os.environ[THREADS] = "1"  # for what is not loaded yet, and for processes that this one starts
        ThreadpoolController().select(internal_api="openblas").limit(limits=1)


@contextmanager
def long_lived() -> Iterator[None]:
    """Within it what is there already is not searched for garbage: in an evaluation of 12 routes x 198
    questions that took a second of 24.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
