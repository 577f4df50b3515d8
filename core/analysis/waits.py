"""The time a route waited for a model that others used, from its spans."""

from __future__ import annotations

from collections.abc import Iterable

from core.backends.admission import SERVICE
from core.domain.format import milliseconds
from core.domain.outputs import Waited
from core.domain.types import Span


def now(spans: Iterable[Span]) -> str:
    """Describe what a running route waits for, its place and about how long; "" if it does not wait."""
    waits = [wait for wait in _waits(span for span in spans if span.error is None) if not wait.over]
    if not waits:
        return ""
    first = min(waits, key=lambda wait: wait.place or 0)
    if first.until == SERVICE:
        return f"waiting for {SERVICE}, {first.about or 0:.0f} s"
    if first.until:
        return f"waits until {first.until}"
    text = "waits for the model"
    if first.place is not None:
        text += ", next in the queue" if first.place == 1 else f", place {first.place} in the queue"
    return text + (f", about {milliseconds(1000 * first.about)}" if first.about is not None else "")


def waited(spans: Iterable[Span]) -> float:
    """Return the milliseconds that a route waited for others' calls, which none of its times counts."""
    return sum(wait.others_ms for wait in _waits(spans) if not wait.until)


def loading(spans: Iterable[Span]) -> float:
    """Return the milliseconds that a route waited until something was available (a model, the text, tokens of
    the day), which none of its times counts.
    """
    return sum(wait.others_ms for wait in _waits(spans) if wait.until)


def _waits(spans: Iterable[Span]) -> list[Waited]:
    return [span.output for span in spans if isinstance(span.output, Waited)]
