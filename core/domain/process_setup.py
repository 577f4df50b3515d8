"""Process-wide limits on memory and threads, set once before other threads start."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import ThreadpoolController

log = logging.getLogger(__name__)
PR_SET_DUMPABLE = 4  # prctl(2)
# glibc's numbers for mallopt (malloc.h).
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# By default glibc has an arena for each of many threads, and learns to keep large blocks. After an evaluation
# of 12 routes x 66 questions a process then holds 990 MB and grows by 50 to 150 MB with the next; with these
# it holds 640 MB and does not grow, at the same speed.
WANTED = {ARENA_MAX: 2, MMAP_THRESHOLD: 256 * 1024, TRIM_THRESHOLD: 512 * 1024}


# Routes run side by side, and their matrix products are small. With a thread for each core OpenBLAS has them
# wait for each other: 14 routes x 96 questions took 38 s of processor time, and 13 with one thread.
THREADS = "OPENBLAS_NUM_THREADS"


_hidden: list[bool] = []
PARENT = "ROUTESCOPE_PARENT"  # variable: a pipe whose other end is open as long as the parent lives
LEAVE_S = 3.0  # from an orphan's interrupt to its end


def end_with_parent() -> None:
    """End this process when its parent has ended, even if the parent was killed.

    The interrupt lets running work be stored; after LEAVE_S seconds the process ends in any case.
    """
    pipe = os.environ.pop(PARENT, "")
    if not pipe:
        return

    def watch() -> None:
        os.read(int(pipe), 1)  # nothing is ever written: this returns when the other end closes
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(LEAVE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def hide_environment() -> None:
    """Let no other process, root's included, read this one's variables in `/proc`. Linux alone shows them.

    The variables stay: they are copied, and what the kernel placed at the process's start is overwritten.
    """
    if not sys.platform.startswith("linux") or _hidden:
        return
    _hidden.append(True)  # once: other threads may be reading variables later
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(stat[47]), int(stat[48])  # env_start and env_end (proc_pid_stat(5))
    for name, value in os.environ.items():
        os.environ[name] = value  # the C library keeps a copy of its own
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)


def conceal() -> None:
    """Let no process of the same user read this one's memory or variables: Linux alone can; root still can
    read the memory.

    Core dumps and debuggers are refused too. So is /dev/stdin for this process, unless it is root's.
    """
    hide_environment()
    if sys.platform.startswith("linux") and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        log.warning("other processes of this user may read this one's memory: prctl failed")


def settle() -> None:
    """Return freed arrays to the system, and limit matrix products to one core.

    OPENBLAS_NUM_THREADS overrides that number of threads.
    """
    give_back_memory()
    hide_environment()
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


def give_back_memory() -> bool:
    """Make the allocator return freed memory to the system. Return True on success, which needs glibc."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        library = ctypes.CDLL(None)
        set_option = library.mallopt
    except (OSError, AttributeError):  # another C library
        log.debug("this C library has no mallopt: memory is managed as it comes")
        return False
    return all(set_option(option, value) == 1 for option, value in WANTED.items())
