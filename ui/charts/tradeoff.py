"""Quality against cost: each route a point, the Pareto front a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.domain.format import milliseconds
from core.evaluation.costs import Point, front
from ui.charts.style import ERROR, KINDS, chart, duration_ticks, ink, outlined, pick, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FRONT, REST = KINDS["RETRIEVER"][1], KINDS["GUARDRAIL"][1]
ON_DARK = KINDS["EMBEDDING"][1]  # the darker blue would be hard to see


def tradeoff(
    points: Mapping[str, Point],
    names: Mapping[str, str],
    baseline: str,
    *,
    metric: str,
    cost: str,
    time: bool,
    region: tuple[float | None, float | None] = (None, None),
) -> Figure:
    """Draw quality against cost, on a log axis if the cost is a `time` in milliseconds.

    `region` is what limits allow: the lowest quality and the highest cost, None for no limit. The Pareto
    front is a line of steps. Only routes on it and the baseline have labels; hovers name the rest.
    """
    known = {name: (q, c) for name, (q, c) in points.items() if q is not None and c is not None}
    on = front(points)
    blue = pick(FRONT, ON_DARK)
    figure = chart(
        420,
        x={"title": words(cost, 60), **(_log(known) if time else {"rangemode": "tozero"})},
        y={"title": words(metric, 60), "tickformat": ".2f"},
        margin={"l": 8, "r": 60, "t": 8, "b": 8},
    )
    rest = [name for name in known if name not in on and name != baseline]
    figure.add_scatter(
        x=[known[name][1] for name in on],
        y=[known[name][0] for name in on],
        mode="lines",
        line={"color": blue, "width": 2, "shape": "hv"},
        hoverinfo="skip",
        showlegend=False,
    )
    for label, group, colour, symbol, size in (
        ("beaten by one on the front", rest, REST, "circle-open", 9),
        ("on the front", [name for name in on if name != baseline], blue, "circle", 12),
        ("baseline", [baseline] if baseline in known else [], ERROR, "diamond", 13),
    ):
        if not group:
            continue
        labelled = group is not rest
        figure.add_scatter(
            x=[known[name][1] for name in group],
            y=[known[name][0] for name in group],
            mode="markers+text" if labelled else "markers",
            text=[words(names[name], 30) for name in group] if labelled else None,
            textposition=[_side(known, on, name) for name in group] if labelled else None,
            name=label,
            marker=outlined(symbol, size, colour),
            customdata=[[words(names[name], 80), _cost(known[name][1], time=time)] for name in group],
            hovertemplate="<b>%{customdata[0]}</b><br>"
            + words(metric, 40)
            + " %{y:.3f}<br>"
            + words(cost, 60)
            + " %{customdata[1]}<extra></extra>",
            cliponaxis=False,
        )
    least, most = region
    if known and region != (None, None):
        top = max(quality for quality, _ in known.values())
        figure.add_shape(
            type="rect",
            x0=0 if most is None else 0.001,  # a log axis has no 0
            x1=1 if most is None else most,
            xref="paper" if most is None else "x",
            y0=0 if least is None else least,
            y1=1 if least is None else max(top, least) + 0.05,
            yref="paper" if least is None else "y",
            fillcolor=blue,
            opacity=0.12,
            line_width=0,
            layer="below",
        )
    figure.update_traces(textfont={"color": ink()}, selector={"mode": "markers+text"})
    return figure


def _log(known: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    """Return a log axis with ticks written as durations."""
    from math import log10

    costs = [max(0.01, cost) for _, cost in known.values()] or [1.0]
    low, high = log10(min(costs)), log10(max(costs))
    room = max(0.15, 0.08 * (high - low))
    steps = (1, 2, 5) if high - low < 3 else (1,)
    ticks = [m * 10.0**n for n in range(-2, 8) for m in steps]
    return {
        "type": "log",
        "range": [low - room, high + room],
        **duration_ticks(ticks),
    }


def _side(known: Mapping[str, tuple[float, float]], on: Sequence[str], name: str) -> str:
    """Return the place of a route's label next to its point.

    It is on the left, clear of the line, unless it would leave the chart there; it is below if the next route
    on the front is nearly as high.
    """
    qualities = [quality for quality, _ in known.values()]
    near = 0.08 * (max(qualities) - min(qualities))
    if name not in on:
        return "bottom right"
    at = on.index(name)
    if at + 1 < len(on) and known[on[at + 1]][0] - known[name][0] < near:
        return "bottom right"
    costs = sorted(cost for _, cost in known.values())
    return "top right" if known[name][1] <= costs[len(costs) // 10] else "top left"


def _cost(value: float, *, time: bool) -> str:
    return milliseconds(value) if time else f"{value:,.4g}"
