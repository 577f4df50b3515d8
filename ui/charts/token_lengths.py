"""How long passages are: a row a chunking, from short ones to long ones, on a log axis of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ui.charts.style import KINDS, base, faint, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
AT = (5, 25, 50, 75, 95)  # percentiles


def percentiles(lengths: NDArray[np.int64]) -> list[float]:
    """The lengths at AT; zeros without passages."""
    return np.percentile(lengths, AT).tolist() if len(lengths) else [0.0] * len(AT)


def token_lengths(found: Mapping[str, NDArray[np.int64]], *, dark: bool = False) -> Figure:
    """A thin line from the 5th to the 95th percentile, a thick one over the middle half, a dot for the
    median.
    """
    import plotly.graph_objects as go

    names = list(found)
    rows = [[max(1.0, value) for value in percentiles(found[name])] for name in names]
    colour = KINDS["RETRIEVER"][1]
    figure = go.Figure(
        layout=dict(
            **base(dark=dark, height=70 + ROW * max(1, len(names))),
            xaxis={
                "type": "log",
                "title": "tokens of a passage",
                "gridcolor": faint(dark=dark),
                "zeroline": False,
                "automargin": True,
                "tickvals": _ticks(rows),
                "fixedrange": True,
            },
            yaxis={
                "range": [len(names) - 0.5, -0.5],
                "tickvals": list(range(len(names))),
                "ticktext": [words(name, 40) for name in names],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
                "ticksuffix": "  ",
                "fixedrange": True,
            },
        )
    )
    for first, last, width in ((0, 4, 2), (1, 3, 9)):
        for n, row in enumerate(rows):
            figure.add_scatter(
                x=[row[first], row[last]],
                y=[n, n],
                mode="lines",
                hoverinfo="skip",
                showlegend=False,
                line={"color": colour, "width": width},
                opacity=1.0 if width == 2 else 0.55,
            )
    figure.add_scatter(
        x=[row[2] for row in rows],
        y=list(range(len(names))),
        mode="markers",
        name="median",
        showlegend=False,
        marker={"size": 10, "color": colour, "line": {"width": 2, "color": "white"}},
        customdata=[[words(name, 60), _hover(found[name])] for name in names],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
    )
    return figure


def in_words(found: Mapping[str, NDArray[np.int64]]) -> str:
    """The same for those who do not see it."""
    return ". ".join(f"{name}: {_hover(lengths)}" for name, lengths in found.items())


def _hover(lengths: NDArray[np.int64]) -> str:
    parts = [f"p{at} {value:,.0f}" for at, value in zip(AT, percentiles(lengths), strict=True)]
    return f"{' · '.join(parts)} tokens; {len(lengths):,} passages"


def _ticks(rows: list[list[float]]) -> list[int]:
    most = max((row[-1] for row in rows), default=10.0)
    return [
        tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000) if tick <= 2 * most
    ]
