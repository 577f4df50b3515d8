"""Routes by kinds of question: values in the cells, marked where they differ from the baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ui.charts.style import base, scale, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
MARKS = {"better": "▲", "worse": "▼"}
Table = Mapping[str, Mapping[str, Mapping[str, Any]]]  # mode -> route -> figures


def scored(by_mode: Table) -> dict[str, int]:
    """The modes of which some question was scored, with how many were for the route with most."""
    counts = {mode: max((row["n"] for row in rows.values()), default=0) for mode, rows in by_mode.items()}
    return {mode: count for mode, count in counts.items() if count}


def cell(row: Mapping[str, Any], metric: str) -> str:
    """A value with its mark; "–" where nothing was scored."""
    found = row.get(metric)
    if found is None:
        return "–"
    verdict = row.get("vs_baseline", {}).get(metric, {}).get("verdict", "")
    return f"{found:.2f}{MARKS.get(verdict, '')}"


def mode_heatmap(
    by_mode: Table, routes: Sequence[str], names: Mapping[str, str], metric: str, *, dark: bool = False
) -> Figure:
    """A row a route in the order of `routes`, a column a mode with its number of questions.

    The colour is the value, from 0 to the best cell's.
    """
    import plotly.graph_objects as go

    modes = scored(by_mode)
    values = [[by_mode[mode][route].get(metric) for mode in modes] for route in routes]
    texts = [[cell(by_mode[mode][route], metric) for mode in modes] for route in routes]
    hovers = [[_hover(by_mode[mode][route], metric) for mode in modes] for route in routes]
    most = max((value for row in values for value in row if value is not None), default=1.0)
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=list(range(len(modes))),
            y=list(range(len(routes))),
            text=texts,
            customdata=hovers,
            texttemplate="%{text}",
            textfont={"size": 12},
            colorscale=scale(dark=dark),
            zmin=0,
            zmax=most or 1.0,
            showscale=False,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            hovertemplate="<b>%{customdata}</b><extra></extra>",
        )
    )
    figure.update_layout(
        **base(dark=dark, height=130 + ROW * max(1, len(routes))),
        xaxis={
            "side": "top",
            "tickvals": list(range(len(modes))),
            "ticktext": [f"{words(mode.replace('_', ' '), 22)} ({count})" for mode, count in modes.items()],
            "tickangle": -55,
            "ticks": "",
            "ticklabeloverflow": "allow",
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "fixedrange": True,
        },
        yaxis={
            "range": [len(routes) - 0.5, -0.5],
            "tickvals": list(range(len(routes))),
            "ticktext": [words(names[route], 36) for route in routes],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "ticksuffix": "  ",
            "ticks": "",
            "fixedrange": True,
        },
    )
    figure.update_layout(margin={"l": 8, "r": 85, "t": 8, "b": 8})  # for the last mode's slanted name
    return figure


def _hover(row: Mapping[str, Any], metric: str) -> str:
    found = row.get(metric)
    if found is None:
        return "no question was scored"
    one = row.get("vs_baseline", {}).get(metric)
    said = f"{found:.3f} over {row['n']}"
    if one is None:
        return said
    return f"{said}<br>{one['delta']:+.3f}: {words(one['verdict'], 40)} (p {one['p_holm']:.3f} after Holm)"
