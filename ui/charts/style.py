"""Colours and layout that every chart shares: a step kind has one colour everywhere, in light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from core.domain.format import STEP_KINDS
from core.domain.types import SpanKind

# Okabe & Ito 2008, "Color Universal Design": told apart with every common form of colour blindness.
# Vermillion is kept for errors.
_COLOURS: Mapping[SpanKind, str] = {
    "LLM": "#E69F00",
    "EMBEDDING": "#56B4E9",
    "RETRIEVER": "#0072B2",
    "CHAIN": "#009E73",
    "RERANKER": "#B5A642",
    "EVALUATOR": "#CC79A7",
    "TOOL": "#7A6FB0",
    "GUARDRAIL": "#8A8D91",
    "AGENT": "#5F6B78",
}
KINDS: Mapping[SpanKind, tuple[str, str]] = {  # what a kind of step is called, and its colour
    kind: (STEP_KINDS[kind], colour) for kind, colour in _COLOURS.items()
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
