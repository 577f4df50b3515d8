"""Differences from a baseline with their intervals: what is left of 0 is worse, what is right is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ui.charts.style import ERROR, KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels
COLOURS = {"better": KINDS["CHAIN"][1], "worse": ERROR, "no difference shown": KINDS["GUARDRAIL"][1]}
SYMBOLS = {"better": "circle", "worse": "square", "no difference shown": "circle-open"}


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of the plot: the mean difference, its 95 % interval if it has one, and the verdict."""

    name: str
    delta: float
    interval: tuple[float, float] | None
    verdict: str
    told: str


def lines(
    found: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], told: Mapping[str, str]
) -> list[Compared]:
    """The comparisons of an evaluation, route -> what `core.evaluation.effects.family` says; largest
    first.
    """
    made = [
        Compared(
            names[route], float(one["delta"]), tuple(one["ci95"]) if one["ci95"] else None, one["verdict"],
            told[route],
        )
        for route, one in found.items()
    ]  # fmt: skip
    return sorted(made, key=lambda one: -one.delta)


def forest(rows: Sequence[Compared], *, metric: str, baseline: str, dark: bool = False) -> Figure:
    """A line each: a point at the mean difference on its interval. Colour and symbol tell the verdict."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for verdict, colour in COLOURS.items():
        at = [n for n, one in enumerate(rows) if one.verdict == verdict]
        if not at:
            continue
        ends = [rows[n].interval or (rows[n].delta, rows[n].delta) for n in at]
        figure.add_scatter(
            x=[rows[n].delta for n in at],
            y=at,
            mode="markers",
            name=verdict if verdict not in ("better", "worse") else f"shown {verdict}",
            marker={
                "symbol": SYMBOLS[verdict],
                "size": 11,
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - rows[n].delta for n, (_, high) in zip(at, ends, strict=True)],
                "arrayminus": [rows[n].delta - low for n, (low, _) in zip(at, ends, strict=True)],
                "color": colour,
                "thickness": 2,
                "width": 5,
            },
            customdata=[[words(rows[n].name, 80), words(rows[n].told, 300)] for n in at],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    figure.add_vline(x=0, line={"color": ink(dark=dark), "width": 1})
    figure.update_layout(
        **base(dark=dark, height=90 + ROW * max(1, len(rows))),
        xaxis={
            "title": {"text": words(f"{metric}, difference from {baseline}", 90), "font": {"size": 12}},
            "gridcolor": faint(dark=dark),
            "zeroline": False,
            "automargin": True,
            "tickformat": "+.2~f",
            "fixedrange": True,
        },
        yaxis={
            "range": [len(rows) - 0.5, -0.5],
            "tickvals": list(range(len(rows))),
            "ticktext": [words(one.name, 44) for one in rows],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "ticksuffix": "  ",
            "fixedrange": True,
        },
    )
    return figure
