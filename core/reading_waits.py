"""What the spans of a route tell of its waits for a model that others used."""

from __future__ import annotations

from collections.abc import Iterable

from core.admission import ABOUT, OTHERS, PLACE, UNTIL, WAIT
from core.charts.look import milliseconds
from core.types import Span


def now(spans: Iterable[Span]) -> str:
    """What a route under way waits for, its place and about how long, in words; "" where it does not."""
    waits = [span for span in spans if span.name == WAIT and span.output is None and span.error is None]
    if not waits:
        return ""
    first = min(waits, key=lambda span: span.inputs.get(PLACE) or 0)
    if until := first.inputs.get(UNTIL):
        return f"waits until {until}"
    place, about = first.inputs.get(PLACE), first.inputs.get(ABOUT)
    said = "waits for the model"
    if isinstance(place, int):
        said += ", which serves it next" if place == 1 else f", place {place} in the queue"
    return said + (f", about {milliseconds(1000 * about)}" if isinstance(about, int | float) else "")


def waited(spans: Iterable[Span]) -> float:
    """The milliseconds that a route waited for others, which none of its times counts."""
    waits = (span.output for span in spans if span.name == WAIT and isinstance(span.output, dict))
    return sum(float(told.get(OTHERS) or 0.0) for told in waits)
