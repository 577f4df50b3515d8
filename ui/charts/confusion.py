"""A confusion matrix: true classes by predicted classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ui.charts.style import add_cells, chart, name_axis, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def confusion(
    labels: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    true: str = "true class",
    taken: str = "classified as",
) -> Figure:
    """Draw the counts, coloured by their share of the row so that rare classes show too.

    Classes without any count are left out. `true` and `taken` name the rows and the columns.
    """
    kept = [n for n in range(len(labels)) if any(counts[n]) or any(row[n] for row in counts)]
    rows = [[counts[n][m] for m in kept] for n in kept]
    names = [words(labels[n].replace("_", " "), 24) for n in kept]
    figure = chart(
        120 + 34 * max(1, len(kept)),
        x=name_axis(names, side="top", title=taken),
        y={**row_axis(names), "title": true},
    )
    add_cells(
        figure,
        [[count / max(1, sum(row)) for count in row] for row in rows],
        text=rows,
        texttemplate="%{text}",
        zmin=0,
        zmax=1,
        customdata=[[[row, column] for column in names] for row in names],
        hovertemplate=f"{true} %{{customdata[0]}}, {taken} %{{customdata[1]}}: %{{text}}<extra></extra>",
    )
    return figure
