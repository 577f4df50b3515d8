"""Passage lengths: one row for each chunking, on a log axis of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ui.charts.style import KINDS, chart, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
PERCENTILES = (5, 25, 50, 75, 95)


def percentiles(lengths: NDArray[np.int64]) -> list[float]:
    """Return the lengths at the percentiles PERCENTILES, or zeros without passages."""
    return np.percentile(lengths, PERCENTILES).tolist() if len(lengths) else [0.0] * len(PERCENTILES)


def token_lengths(found: Mapping[str, NDArray[np.int64]]) -> Figure:
    """Draw each chunking's passage lengths in tokens.

    A thin line spans the 5th to the 95th percentile, a thick one the middle half; a dot marks the median.
    """
    names = list(found)
    rows = [[max(1.0, value) for value in percentiles(found[name])] for name in names]
    colour = KINDS["RETRIEVER"][1]
    figure = chart(
        70 + ROW * max(1, len(names)),
        x={"type": "log", "title": "tokens of a passage", "tickvals": _ticks(rows)},
        y=row_axis([words(name, 40) for name in names]),
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


def describe_lengths(found: Mapping[str, NDArray[np.int64]]) -> str:
    """Describe the chart by its percentiles."""
    return ". ".join(f"{name}: {_hover(lengths)}" for name, lengths in found.items())


def _hover(lengths: NDArray[np.int64]) -> str:
    parts = [f"p{at} {value:,.0f}" for at, value in zip(PERCENTILES, percentiles(lengths), strict=True)]
    return f"{' · '.join(parts)} tokens; {len(lengths):,} passages"


def _ticks(rows: list[list[float]]) -> list[int]:
    most = max((row[-1] for row in rows), default=10.0)
    return [
        tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000) if tick <= 2 * most
    ]
