"""Quantities as people read them."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import Any

from core.domain.text import one_line
from core.domain.types import SpanKind


def size(count: float) -> str:
    """Bytes for people."""
    power = min(3, int(math.log(count, 1024))) if count >= 1 else 0
    return f"{count / 1024**power:.{1 if power else 0}f} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def milliseconds(ms: float) -> str:
    """Format a duration: 0.4 ms, 12 ms, 3.1 s, 2 min 5 s; "?" if it is not finite."""
    if not math.isfinite(ms):
        return "?"
    if ms < 9.95:
        return f"{ms:.1f} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 99_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def brief(share: float) -> str:
    """Format a share from 0 to 1 for a table or chart, never rounding a partial share to 0% or 100%."""
    if 0.995 <= share < 1:
        return ">99%"
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def number(value: float | None, *, signed: bool = False) -> str:
    """Format a score or a difference with three decimals and a real minus sign: 0.042, +0.042, −0.042.

    A value that would be rounded to 0 keeps two digits; None is a dash.
    """
    if value is None:
        return "–"
    value = 0.0 if abs(value) < 1e-12 else value  # left over from summing floats, or -0
    tiny = 0 < abs(value) < 0.0005
    return f"{value:{'+' if signed else ''}{'.2g' if tiny else '.3f'}}".replace("-", "−")


def between(low: float, high: float, *, signed: bool = False) -> str:
    """Format an interval: 0.011 to 0.073."""
    return f"{number(low, signed=signed)} to {number(high, signed=signed)}"


def p_value(p: float) -> str:
    """Format a p-value: p = 0.004, p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p = {number(p)}"


STEP_KINDS: Mapping[SpanKind, str] = {  # kinds of step as charts and sentences call them
    "LLM": "language model",
    "EMBEDDING": "embedding",
    "RETRIEVER": "search",
    "CHAIN": "fusion and glue",
    "RERANKER": "reranking",
    "EVALUATOR": "grading",
    "TOOL": "tool",
    "GUARDRAIL": "guardrail",
    "AGENT": "agent",
}


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
