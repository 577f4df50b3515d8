"""Spreads on a log axis: latencies over many runs, and passage lengths of chunkings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from core.analysis.timeline import FROM, Latency
from core.domain.format import milliseconds
from ui.charts.style import (
    KINDS,
    Figure,
    add_line,
    add_points,
    chart,
    duration_ticks,
    ink,
    outlined,
    row_axis,
    words,
)

ROWS_SHOWN = 40
LEAST_MS = 0.01  # a log axis has no place for 0
PERCENTILES = (5, 25, 50, 75, 95)
TOKEN_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def range_plot(found: Sequence[Latency]) -> Figure:
    """Draw the first ROWS_SHOWN latencies: a dot at the median and a line to the 95th percentile.

    With too few measurements for the 95th percentile, the line ends at the largest, an open diamond.
    """
    rows = list(found[:ROWS_SHOWN])
    medians = [max(LEAST_MS, one.at[50] or 0.0) for one in rows]
    ends = [max(LEAST_MS, one.at[95] or one.largest) for one in rows]
    same = len({one.answered for one in rows}) == 1
    names = [words(one.title + FROM[one.source] if same else one.name, 44) for one in rows]
    least, most = min(medians, default=1.0), max(ends, default=1.0)
    figure = chart(
        80 + 22 * max(1, len(rows)),
        x={"type": "log", "fixedrange": False, **duration_ticks(least, most)},
        y={**row_axis(names), "fixedrange": False},
    )
    colours, about = [KINDS[one.kind][1] if one.kind else ink() for one in rows], []
    for n, (one, colour) in enumerate(zip(rows, colours, strict=True)):
        add_line(figure, [medians[n], ends[n]], [n, n], {"color": colour, "width": 2})
        known = [f"p{p} {milliseconds(ms)}" for p, ms in one.at.items() if ms is not None]
        times = f"{' · '.join(known)} · largest {milliseconds(one.largest)}"
        about.append([words(one.name, 80), f"{times}<br>{one.n} measured"])
    few = [n for n, one in enumerate(rows) if one.at[95] is None]
    for label, symbol, size, at, chosen in (
        ("median", "circle", 9, medians, range(len(rows))),
        ("95th percentile", "line-ns-open", 11, ends, [n for n in range(len(rows)) if n not in few]),
        ("largest of fewer than 20", "diamond-open", 11, ends, [n for n in few if rows[n].n > 1]),
    ):
        points = [(at[n], n, about[n]) for n in chosen]
        marker = outlined(symbol, size, [colours[n] for n in chosen])
        add_points(figure, points, "<b>%{customdata[0]}</b><br>%{customdata[1]}", marker, name=label)
    return figure


def length_ranges(found: Mapping[str, NDArray[np.int64]]) -> Figure:
    """Draw each chunking's passage lengths in tokens.

    A thin line spans the 5th to the 95th percentile, a thick one the middle half; a dot marks the median.
    """
    rows = [[max(1.0, value) for value in percentiles(lengths)] for lengths in found.values()]
    most = max((row[-1] for row in rows), default=10.0)
    figure = chart(
        70 + 30 * max(1, len(rows)),
        x={
            "type": "log",
            "title": "tokens of a passage",
            "tickvals": [tick for tick in TOKEN_TICKS if tick <= 2 * most],
        },
        y=row_axis([words(name, 40) for name in found]),
    )
    colour = KINDS["RETRIEVER"][1]
    for n, row in enumerate(rows):
        add_line(figure, [row[0], row[4]], [n, n], {"color": colour, "width": 2})
        add_line(figure, [row[1], row[3]], [n, n], {"color": colour, "width": 9}, opacity=0.55)
    add_points(
        figure,
        [
            (row[2], n, f"<b>{words(name, 60)}</b><br>{describe_lengths(lengths)}")
            for n, (row, (name, lengths)) in enumerate(zip(rows, found.items(), strict=True))
        ],
        "%{customdata}",
        {"size": 10, "color": colour, "line": {"width": 2, "color": "white"}},
        name="median",
        showlegend=False,
    )
    return figure


def percentiles(lengths: NDArray[np.int64]) -> list[float]:
    """Return the lengths at the percentiles PERCENTILES, or zeros without passages."""
    return np.percentile(lengths, PERCENTILES).tolist() if len(lengths) else [0.0] * len(PERCENTILES)


def describe_lengths(lengths: NDArray[np.int64]) -> str:
    """Describe passage lengths by their percentiles."""
    parts = [f"p{at} {value:,.0f}" for at, value in zip(PERCENTILES, percentiles(lengths), strict=True)]
    return f"{' · '.join(parts)} tokens; {len(lengths):,} passages"
