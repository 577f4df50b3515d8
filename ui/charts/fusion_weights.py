"""Fitted weights: what each list gives to its first passage, and of what that is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from ui.charts.style import KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 34  # pixels
NAMES = {"score": "its score, at the list's highest", "listed": "being in the list", "1/rank": "being first"}
COLOURS = dict(zip(FEATURES, (KINDS[kind][1] for kind in ("RETRIEVER", "EMBEDDING", "LLM")), strict=True))
HATCHES = dict(zip(FEATURES, ("", "/", "."), strict=True))


def weight_bars(fitted: FittedWeights, *, dark: bool = False) -> Figure:
    """A bar a list, most on top, cut into the weights of its features; what is below 0 goes to the left."""
    import plotly.graph_objects as go

    rows = sorted(zip(fitted.lists, fitted.weights, strict=True), key=lambda one: -sum(one[1]))
    shown = list(range(len(rows)))
    figure = go.Figure()
    for n, feature in enumerate(FEATURES):
        figure.add_bar(
            orientation="h",
            name=NAMES[feature],
            y=shown,
            x=[row[n] for _, row in rows],
            marker={
                "color": COLOURS[feature],
                "pattern": {"shape": HATCHES[feature], "solidity": 0.3, "size": 6},
                "line": {"width": 0.5, "color": ink(dark=dark)},
            },
            customdata=[words(LISTS[name], 40) for name, _ in rows],
            hovertemplate="%{customdata}: " + NAMES[feature] + " gives %{x:+.3f}<extra></extra>",
        )
    figure.add_scatter(
        y=shown,
        x=[sum(value for value in row if value > 0) for _, row in rows],
        text=[f" {sum(row):+.2f}" for _, row in rows],
        mode="text",
        textposition="middle right",
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )
    most = max((sum(value for value in row if value > 0) for _, row in rows), default=1.0) or 1.0
    least = min((sum(value for value in row if value < 0) for _, row in rows), default=0.0)
    figure.update_layout(
        **{**base(dark=dark, height=100 + ROW * len(rows)), "barmode": "relative", "bargap": 0.35},
        xaxis={
            "range": [1.1 * least, 1.2 * most],
            "title": "score that a list adds to its first passage",
            "gridcolor": faint(dark=dark),
            "zerolinecolor": ink(dark=dark),
            "automargin": True,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": shown,
            "ticktext": [words(LISTS[name], 40) for name, _ in rows],
            "ticksuffix": "  ",
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
    )
    return figure
