"""How this process takes memory from the system, and gives it back."""

from __future__ import annotations

import ctypes
import logging
import sys

log = logging.getLogger(__name__)
# glibc's numbers for mallopt (malloc.h).
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# By default glibc has an arena for each of many threads, and learns to keep large blocks. After an evaluation
# of 12 routes x 66 questions a process then holds 990 MB and grows by 50 to 150 MB with the next; with these
# it holds 640 MB and does not grow, at the same speed.
WANTED = {ARENA_MAX: 2, MMAP_THRESHOLD: 256 * 1024, TRIM_THRESHOLD: 512 * 1024}


def settle() -> bool:
    """Have what large arrays took go back to the system when they go; whether that could be set.

    It is set before other threads begin, and only where the C library is glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        library = ctypes.CDLL(None)
        set_option = library.mallopt
    except (OSError, AttributeError):  # another C library
        log.debug("this C library has no mallopt: memory is managed as it comes")
        return False
    return all(set_option(option, value) == 1 for option, value in WANTED.items())
