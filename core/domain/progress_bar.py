"""Progress on stderr: a bar on a terminal or in a notebook, else a plain line now and then and at the end."""

from __future__ import annotations

import sys
import time
from typing import Any

from core.domain.format import size
from core.domain.text import one_line

DELAY_S = 1.0  # what is done sooner needs no bar
EVERY_S = 20.0  # between two lines where stderr is no terminal


class ProgressBar:
    """A bar for one thing after the other. `unit` "B" counts bytes; a new `label` begins a new bar."""

    def __init__(self, unit: str = "") -> None:
        self._unit = unit
        self._label = ""
        self._bar: Any = None

    def __call__(self, label: str, done: int, total: int) -> None:
        """`done` of `total` units of `label` are finished; a total of 0 is not known."""
        now = time.monotonic()
        if label != self._label:
            self.close()
            self._label, self._first, self._began, self._said = label, done, now, now
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            self._draw(done, total)
        elif done >= total > 0 or now - self._said >= EVERY_S:
            self._said = now
            passed, new = now - self._began, done - self._first
            took = f"in {passed:.0f} s"
            if new > 0 and done < total:
                took = f"about {passed / new * (total - done):.0f} s left"
            count, of = (size(one) if self._unit == "B" else f"{one:,}" for one in (done, total))
            sys.stderr.write(f"{one_line(label)}: {count}{f' of {of}' if total else ''} {took}\n")

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total or None,
                initial=done,
                desc=self._label,
                unit=self._unit,
                unit_scale=self._unit == "B",
                file=sys.stderr,
                dynamic_ncols=True,
                delay=DELAY_S,
            )
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)
        if done >= total > 0:
            self.close()
