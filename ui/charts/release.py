"""The comparisons behind a verdict: one route minus each other, with the margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.evaluation.verdict import Verdict
from core.evaluation.verdict_text import compared
from ui.charts.style import ERROR, KINDS, chart, error_bars, ink, outlined, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels


def rests(found: Verdict, named: Callable[[str], str], *, dark: bool = False) -> Figure:
    """Draw a row for each other route: the difference on its interval, the closest route first."""
    figure = chart(
        90 + ROW * max(1, len(found.pairs)),
        dark=dark,
        x={"tickformat": "+.2~f"},
        y=row_axis([words(named(one.other), 44) for one in found.pairs]),
    )
    for place, pair in enumerate(found.pairs):
        shown = pair.low > -found.margin
        colour = KINDS["CHAIN"][1] if shown else ERROR
        figure.add_scatter(
            x=[pair.delta],
            y=[place],
            mode="markers",
            showlegend=False,
            marker=outlined("circle" if shown else "circle-open", 11, colour),
            error_x=error_bars([pair.delta], [(pair.low, pair.high)], colour),
            customdata=[words(compared(pair, named), 300)],
            hovertemplate="%{customdata}<extra></extra>",
        )
    for value, dash in ((0, "solid"), (-found.margin, "dash")):
        figure.add_vline(x=value, line={"color": ink(dark=dark), "width": 1, "dash": dash})
    return figure
