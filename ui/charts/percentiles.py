"""The spread of latencies over many runs: lines from the median to the 95th percentile, on a log axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.analysis.latency_percentiles import FROM, Latency
from core.domain.format import milliseconds
from ui.charts.style import KINDS, chart, duration_ticks, ink, outlined, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 22  # pixels
ROWS_SHOWN = 40
LEAST_MS = 0.01  # a log axis has no place for 0


def range_plot(found: Sequence[Latency]) -> Figure:
    """Draw the first ROWS_SHOWN latencies: a dot at the median and a line to the 95th percentile.

    With too few measurements for the 95th percentile, the line ends at the largest, an open diamond.
    """
    rows = list(found[:ROWS_SHOWN])
    colours = [KINDS[one.kind][1] if one.kind else ink() for one in rows]
    ticks = _ticks([_on_axis(ms) for one in rows for ms in (one.at[50], end(one)[0])])
    same = len({one.answered for one in rows}) == 1
    names = [words(one.title + FROM[one.source] if same else one.name, 44) for one in rows]
    figure = chart(
        80 + ROW * max(1, len(rows)),
        x={"type": "log", "fixedrange": False, **duration_ticks(ticks)},
        y={**row_axis(names), "fixedrange": False},
    )
    for n, one in enumerate(rows):
        figure.add_scatter(
            x=[_on_axis(one.at[50]), _on_axis(end(one)[0])],
            y=[n, n],
            mode="lines",
            line={"color": colours[n], "width": 2},
            hoverinfo="skip",
            showlegend=False,
        )
    sure = [n for n, one in enumerate(rows) if end(one)[1] == "p95"]
    for label, symbol, chosen in (
        ("median", "circle", list(range(len(rows)))),
        ("95th percentile", "line-ns-open", sure),
        (
            "largest of fewer than 20",
            "diamond-open",
            [n for n in range(len(rows)) if n not in sure and rows[n].n > 1],
        ),
    ):
        if not chosen:
            continue
        figure.add_scatter(
            x=[_on_axis(rows[n].at[50] if symbol == "circle" else end(rows[n])[0]) for n in chosen],
            y=chosen,
            mode="markers",
            name=label,
            marker=outlined(symbol, 9 if symbol == "circle" else 11, [colours[n] for n in chosen]),
            customdata=[[words(rows[n].name, 80), _hover(rows[n])] for n in chosen],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    return figure


def end(one: Latency) -> tuple[float, str]:
    """Return where a latency's line ends, in ms, and what that is: "p95" or "largest"."""
    at = one.at[95]
    return (one.largest, "largest") if at is None else (at, "p95")


def _ticks(drawn: Sequence[float]) -> list[float]:
    """Return each power of ten, with 2 and 5 times it if the axis spans less than three of them."""
    few = max(drawn, default=1.0) < 1000 * min(drawn, default=1.0)
    return [round(m * 10.0**n, 2 - n) for n in range(-2, 7) for m in ((1, 2, 5) if few else (1,))]


def _on_axis(ms: float | None) -> float:
    return max(LEAST_MS, ms or 0.0)


def _hover(one: Latency) -> str:
    known = [f"p{p} {milliseconds(ms)}" for p, ms in one.at.items() if ms is not None]
    return f"{' · '.join(known)} · largest {milliseconds(one.largest)}<br>{one.n} measured"
