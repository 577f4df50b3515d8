"""Colours and layout that every chart shares: a step kind has one colour everywhere, in light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import isfinite
from typing import Any

from core.domain.types import SpanKind

# Okabe & Ito 2008, "Color Universal Design": told apart with every common form of colour blindness.
# Vermillion is kept for errors.
KINDS: Mapping[SpanKind, tuple[str, str]] = {
    "LLM": ("language model", "#E69F00"),
    "EMBEDDING": ("embedding", "#56B4E9"),
    "RETRIEVER": ("search", "#0072B2"),
    "CHAIN": ("fusion and glue", "#009E73"),
    "RERANKER": ("reorder", "#B5A642"),
    "EVALUATOR": ("grading", "#CC79A7"),
    "TOOL": ("tool", "#7A6FB0"),
    "GUARDRAIL": ("guardrail", "#8A8D91"),
    "AGENT": ("agent", "#5F6B78"),
}
ERROR = "#D55E00"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


def ink(*, dark: bool) -> str:
    """Text colour."""
    return "#e4e2dd" if dark else "#22262a"


def faint(*, dark: bool) -> str:
    """Lines and empty cells."""
    return "#343a40" if dark else "#e3dfd6"


def scale(*, dark: bool) -> list[tuple[float, str]]:
    """One hue from "hardly there" (0) to "first" (1): the stronger, the higher the rank."""
    if dark:
        return [(0.0, "#1e2428"), (0.5, "#1d4f50"), (1.0, "#2b8f86")]
    return [(0.0, "#f1efe9"), (0.5, "#8cc1bb"), (1.0, "#0b5e5e")]


def shade(share: float, *, dark: bool) -> str:
    """The colour of `scale` at a share from 0 to 1, as #rrggbb."""
    stops = scale(dark=dark)
    at = next((n for n in range(1, len(stops)) if share <= stops[n][0]), len(stops) - 1)
    (low, one), (high, other) = stops[at - 1 : at + 1]
    part = min(1.0, max(0.0, (share - low) / (high - low)))
    pairs = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * part) for a, b in pairs).hex()


def base(*, dark: bool, height: int) -> dict[str, Any]:
    """Layout arguments for a figure that sits on the page's own background."""
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": ink(dark=dark)},
        "hoverlabel": {"font": {"family": FONT, "size": 12}, "align": "left"},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
    }


def words(text: str, limit: int) -> str:
    """Text for an axis or a hover: one line, cut, and without the markup that plotly would read."""
    line = " ".join(text.split())
    return escape(line if len(line) <= limit else line[: limit - 1].rstrip() + "…")


def milliseconds(ms: float) -> str:
    """A duration as people read it: 0.4 ms, 12 ms, 3.1 s, 2 min 5 s; "?" for no finite number."""
    if not isfinite(ms):
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
    """A share from 0 to 1 in a table or a chart; what is not all or nothing is not rounded to it."""
    if 0.995 <= share < 1:
        return ">99%"
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
