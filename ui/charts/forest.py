"""Differences from a baseline with their intervals: what is left of 0 is worse, what is right is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.evaluation.finding import NONE, Finding, sentence
from ui.charts.style import ERROR, KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels
COLOURS = {"better": KINDS["CHAIN"][1], "worse": ERROR, NONE: KINDS["GUARDRAIL"][1]}
SYMBOLS = {"better": "circle", "worse": "square", NONE: "circle-open"}


def forest(found: Sequence[Finding], *, dark: bool = False) -> Figure:
    """A line each for differences from one baseline in one metric, the largest first: a point at the mean
    difference on its interval. Colour and symbol show the verdict.
    """
    import plotly.graph_objects as go

    about = f"{found[0].metric}, difference from {found[0].baseline}" if found else ""
    rows = sorted(found, key=lambda one: -(one.estimate or 0.0))
    figure = go.Figure()
    for verdict, colour in COLOURS.items():
        some = [(n, one) for n, one in enumerate(rows) if (one.verdict if one.shown else NONE) == verdict]
        if not some:
            continue
        at = [one.estimate or 0.0 for _, one in some]
        ends = [one.interval or (x, x) for x, (_, one) in zip(at, some, strict=True)]
        figure.add_scatter(
            x=at,
            y=[n for n, _ in some],
            mode="markers",
            name=f"shown {verdict}" if verdict != NONE else verdict,
            marker={
                "symbol": SYMBOLS[verdict],
                "size": 11,
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - x for x, (_, high) in zip(at, ends, strict=True)],
                "arrayminus": [x - low for x, (low, _) in zip(at, ends, strict=True)],
                "color": colour,
                "thickness": 2,
                "width": 5,
            },
            customdata=[[words(one.subject, 80), words(sentence(one), 300)] for _, one in some],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    figure.add_vline(x=0, line={"color": ink(dark=dark), "width": 1})
    figure.update_layout(
        **base(dark=dark, height=90 + ROW * max(1, len(rows))),
        xaxis={
            "title": {"text": words(about, 90), "font": {"size": 12}},
            "gridcolor": faint(dark=dark),
            "zeroline": False,
            "automargin": True,
            "tickformat": "+.2~f",
            "fixedrange": True,
        },
        yaxis={
            "range": [len(rows) - 0.5, -0.5],
            "tickvals": list(range(len(rows))),
            "ticktext": [words(one.subject, 44) for one in rows],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "ticksuffix": "  ",
            "fixedrange": True,
        },
    )
    return figure
