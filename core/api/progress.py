"""Progress reports, to a given function or on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from core.domain.errors import BadInput

Progress = Callable[[str, int, int], None]
"""Called with what is done, how many of it are done, and of how many (0: not known)."""

DELAY_S = 1.0  # what is done sooner needs no bar
EVERY_S = 20.0  # between two lines where stderr is a file


@contextmanager
def reporting(progress: Progress | bool) -> Iterator[Progress]:
    """Whom to tell: the function given, stderr for True, nobody for False; BadInput for others."""
    if progress is True:
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.close()
    elif progress is False:
        yield lambda _what, _done, _total: None
    elif callable(progress):
        yield progress
    else:
        raise BadInput(f"progress={progress!r}; give True, False or a function of (what, done, total)")


class _Bar:
    """tqdm's bar in a terminal or a notebook, from one second on; else a plain line now and then."""

    def __init__(self) -> None:
        self._what = ""
        self._began = 0.0
        self._said = 0.0
        self._bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self.close()
            self._what, self._began = what, time.monotonic()
            self._said = self._began
        now = time.monotonic()
        if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            if now - self._said >= EVERY_S:
                self._said = now
                sys.stderr.write(f"{what}: {done:,}{f' of {total:,}' if total else ''}\n")
            return
        if now - self._began < DELAY_S:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total or None, initial=done, desc=what, file=sys.stderr, leave=False, mininterval=0.5
            )
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
