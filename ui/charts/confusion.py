"""What something was taken for: a row a class as it is, a column a class it was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ui.charts.style import base, scale, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def confusion(
    labels: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    true: str = "true class",
    taken: str = "classified as",
    dark: bool = False,
) -> Figure:
    """The counts in the cells; the colour is the share of the row, so that rare classes show too.

    Classes that nothing is and nothing was taken for are left out. `true` and `taken` name rows and columns.
    """
    import plotly.graph_objects as go

    kept = [n for n in range(len(labels)) if any(counts[n]) or any(row[n] for row in counts)]
    rows = [[counts[n][m] for m in kept] for n in kept]
    shares = [[count / max(1, sum(row)) for count in row] for row in rows]
    names = [words(labels[n].replace("_", " "), 24) for n in kept]
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=list(range(len(kept))),
            y=list(range(len(kept))),
            text=rows,
            texttemplate="%{text}",
            colorscale=scale(dark=dark),
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=2,
            ygap=2,
            customdata=[[[names[n], names[m]] for m in range(len(kept))] for n in range(len(kept))],
            hovertemplate=f"{true} %{{customdata[0]}}, {taken} %{{customdata[1]}}: %{{text}}<extra></extra>",
        )
    )
    axis: dict[str, Any] = {
        "tickvals": list(range(len(kept))),
        "ticktext": names,
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }
    figure.update_layout(
        **base(dark=dark, height=120 + 34 * max(1, len(kept))),
        xaxis={**axis, "side": "top", "title": {"text": taken, "font": {"size": 12}}},
        yaxis={
            **axis,
            "range": [len(kept) - 0.5, -0.5],
            "title": {"text": true, "font": {"size": 12}},
        },
    )
    return figure
