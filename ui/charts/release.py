"""The comparisons that a verdict rests on: one route minus each other, with the margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.evaluation.verdict import Verdict
from core.evaluation.verdict_text import compared
from ui.charts.style import ERROR, KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels


def rests(found: Verdict, named: Callable[[str], str], *, dark: bool = False) -> Figure:
    """Draw a row for each other route: the difference on its interval, the closest route first."""
    import plotly.graph_objects as go

    figure = go.Figure()
    shown, open_ = KINDS["CHAIN"][1], ERROR
    for place, pair in enumerate(found.pairs):
        colour = shown if pair.low > -found.margin else open_
        figure.add_scatter(
            x=[pair.delta],
            y=[place],
            mode="markers",
            showlegend=False,
            marker={
                "color": colour,
                "size": 11,
                "symbol": "circle" if colour == shown else "circle-open",
                "line": {"width": 2, "color": colour},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [pair.high - pair.delta],
                "arrayminus": [pair.delta - pair.low],
                "color": colour,
                "thickness": 2,
                "width": 5,
            },
            customdata=[words(compared(pair, named), 300)],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.add_vline(x=0, line={"color": ink(dark=dark), "width": 1})
    figure.add_vline(x=-found.margin, line={"color": ink(dark=dark), "width": 1, "dash": "dash"})
    figure.update_layout(**base(dark=dark, height=90 + ROW * max(1, len(found.pairs))))
    figure.update_xaxes(gridcolor=faint(dark=dark), zeroline=False, tickformat="+.2~f", automargin=True)
    figure.update_yaxes(
        tickvals=list(range(len(found.pairs))),
        ticktext=[words(named(one.other), 44) for one in found.pairs],
        range=[len(found.pairs) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        automargin=True,
    )
    return figure
