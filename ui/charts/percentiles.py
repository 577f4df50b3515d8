"""How much times vary over many runs: a line from the median to where nearly all ended, on a log axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.analysis.latency_percentiles import FROM, Latency
from core.domain.format import milliseconds
from ui.charts.style import KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 22  # pixels
SHOWN = 40  # rows
LEAST = 0.01  # ms; a log axis has no place for 0


def range_plot(found: Sequence[Latency], *, dark: bool = False) -> Figure:
    """A row each for the first SHOWN of `found`: the median a dot, its line to the 95th percentile, which
    ends in a bar; with too few measurements for that, to the largest, which ends in an open diamond.
    """
    import plotly.graph_objects as go

    rows = list(found[:SHOWN])
    colours = [KINDS[one.kind][1] if one.kind else ink(dark=dark) for one in rows]
    ticks = _ticks([_placed(ms) for one in rows for ms in (one.at[50], end(one)[0])])
    same = len({one.answered for one in rows}) == 1
    # The layout is given at once: to update it afterwards takes plotly three times as long.
    figure = go.Figure(
        layout=dict(
            **base(dark=dark, height=80 + ROW * max(1, len(rows))),
            xaxis={
                "type": "log",
                "title": None,
                "gridcolor": faint(dark=dark),
                "zeroline": False,
                "automargin": True,
                "tickvals": ticks,
                "ticktext": [milliseconds(ms) if ms >= 0.1 else f"{ms:g} ms" for ms in ticks],
            },
            yaxis={
                "range": [len(rows) - 0.5, -0.5],
                "tickvals": list(range(len(rows))),
                "ticktext": [words(one.title + FROM[one.source] if same else one.name, 44) for one in rows],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
                "ticksuffix": "  ",
            },
        )
    )
    for n, one in enumerate(rows):
        figure.add_scatter(
            x=[_placed(one.at[50]), _placed(end(one)[0])],
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
            x=[_placed(rows[n].at[50] if symbol == "circle" else end(rows[n])[0]) for n in chosen],
            y=chosen,
            mode="markers",
            name=label,
            marker={
                "symbol": symbol,
                "size": 9 if symbol == "circle" else 11,
                "color": [colours[n] for n in chosen],
                "line": {"width": 2, "color": [colours[n] for n in chosen]},
            },
            customdata=[[words(rows[n].name, 80), _hover(rows[n])] for n in chosen],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    return figure


def end(one: Latency) -> tuple[float, str]:
    """Where its line ends, ms, and what that is: "p95" or "largest"."""
    at = one.at[95]
    return (one.largest, "largest") if at is None else (at, "p95")


def _ticks(drawn: Sequence[float]) -> list[float]:
    """Every power of ten, and 2 and 5 times it where the axis spans less than three of them."""
    few = max(drawn, default=1.0) < 1000 * min(drawn, default=1.0)
    return [round(m * 10.0**n, 2 - n) for n in range(-2, 7) for m in ((1, 2, 5) if few else (1,))]


def _placed(ms: float | None) -> float:
    return max(LEAST, ms or 0.0)


def _hover(one: Latency) -> str:
    known = [f"p{p} {milliseconds(ms)}" for p, ms in one.at.items() if ms is not None]
    return f"{' · '.join(known)} · largest {milliseconds(one.largest)}<br>{one.n} measured"
