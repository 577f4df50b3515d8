"""The weight of dense search: how well each weight finds a corpus' known items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.corpus.types import DenseWeight
from ui.charts.style import KINDS, chart, faint, ink

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 220


def weight_curve(measured: DenseWeight) -> Figure:
    """Draw the mean nDCG@10 of the known items against the weight, with the chosen one and its range."""
    figure = chart(
        HEIGHT,
        x={"title": "weight of dense; BM25 has the rest", "range": [-0.02, 1.02]},
        y={"title": "nDCG@10 of known items"},
        showlegend=False,
    )
    figure.add_vrect(measured.low, measured.high, fillcolor=faint(), line_width=0, layer="below")
    figure.add_vline(measured.weight, line={"color": ink(), "width": 1, "dash": "dash"})
    figure.add_scatter(
        x=[weight for weight, _ in measured.found],
        y=[mean for _, mean in measured.found],
        mode="lines+markers",
        name="known items",
        line={"color": KINDS["RETRIEVER"][1], "width": 2},
        hovertemplate="weight %{x:.2f}: %{y:.3f}<extra></extra>",
    )
    return figure
