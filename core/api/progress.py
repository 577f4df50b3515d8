"""Progress reports, to a given function or on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.domain.errors import BadInput
from core.domain.format import ProgressBar

Progress = Callable[[str, int, int], None]
"""Called with what is done, how many of it are done, and of how many (0: not known)."""


@contextmanager
def reporting(progress: Progress | bool) -> Iterator[Progress]:
    """Whom to tell: the function given, stderr for True, nobody for False; BadInput for others."""
    if progress is True:
        bar = ProgressBar()
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
