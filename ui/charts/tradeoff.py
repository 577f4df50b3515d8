"""Quality against cost: each route a point, the Pareto front a line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import log10
from typing import Any

from core.domain.format import milliseconds
from core.evaluation.costs import Point, front
from ui.charts import style
from ui.charts.style import KINDS, Figure, chart, words

Places = Mapping[str, tuple[float, float]]  # quality and cost by route


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
    blue = style.pick(KINDS["RETRIEVER"][1], KINDS["EMBEDDING"][1])  # on dark, the darker blue is hard to see
    figure = chart(
        420,
        x={"title": words(cost, 60), **(_log(known) if time else {"rangemode": "tozero"})},
        y={"title": words(metric, 60), "tickformat": ".2f"},
        margin={"l": 8, "r": 60, "t": 8, "b": 8},
    )
    # Two labels below and right of points that are next to each other would lie on one another.
    at = {name: (q, log10(max(0.01, c)) if time else c) for name, (q, c) in known.items()}
    near = [0.1 * (max(one) - min(one)) for one in zip(*at.values(), strict=True)]
    crowded = {
        one
        for one, two in pairwise(on)
        if all(abs(a - b) < d for a, b, d in zip(at[one], at[two], near, strict=True))
    }
    line = {"color": blue, "width": 2, "shape": "hv"}
    style.add_line(figure, [known[name][1] for name in on], [known[name][0] for name in on], line)
    beaten = "beaten by one on the front"
    for label, group, colour, symbol, size in (
        (beaten, [n for n in known if n not in (*on, baseline)], KINDS["GUARDRAIL"][1], "circle-open", 9),
        ("on the front", [name for name in on if name != baseline], blue, "circle", 12),
        ("baseline", [baseline] if baseline in known else [], style.ERROR, "diamond", 13),
    ):
        spoken = [milliseconds(known[n][1]) if time else f"{known[n][1]:,.4g}" for n in group]
        labels: dict[str, Any] = {}
        if label != beaten:
            labels = {"mode": "markers+text", "text": [words(names[name], 30) for name in group]}
            # clear of the line, which goes right and then up; the last one would leave the chart there
            sides = ["top left" if n == on[-1] or n in crowded else "bottom right" for n in group]
            labels |= {"textposition": sides, "textfont": {"color": style.ink()}}
        style.add_points(
            figure,
            [
                (known[n][1], known[n][0], [words(names[n], 80), text])
                for n, text in zip(group, spoken, strict=True)
            ],
            f"<b>%{{customdata[0]}}</b><br>{words(metric, 40)} %{{y:.3f}}<br>{words(cost, 60)} "
            "%{customdata[1]}",
            style.outlined(symbol, size, colour),
            name=label,
            cliponaxis=False,
            **labels,
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
    return figure


def _log(known: Places) -> dict[str, Any]:
    """Return a log axis with ticks written as durations."""
    costs = [max(0.01, cost) for _, cost in known.values()] or [1.0]
    low, high = log10(min(costs)), log10(max(costs))
    room = max(0.15, 0.08 * (high - low))
    return {"type": "log", "range": [low - room, high + room], **style.duration_ticks(min(costs), max(costs))}
