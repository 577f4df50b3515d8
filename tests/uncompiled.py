"""ranx as plain Python: compiling it takes minutes, and a process of its own loads everything again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numba


@contextmanager
def ranx() -> Iterator[ModuleType]:
    """The module, to be used inside: numba looks whether it may compile when a function is made, and when
    one makes a typed list.
    """
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        import ranx as module
        import ranx.statistical_tests

        yield module
    finally:
        numba.config.DISABLE_JIT = before
