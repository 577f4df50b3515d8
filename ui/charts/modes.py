"""A metric by route and type of question, with marks for differences from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.domain.format import number, p_value
from ui.charts.style import add_cells, chart, name_axis, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
MARKS = {"better": "▲", "worse": "▼"}
Table = Mapping[str, Mapping[str, Mapping[str, Any]]]  # mode -> route -> figures


def scored(by_mode: Table) -> dict[str, int]:
    """Return the modes with scored questions and the largest number of questions scored for any route."""
    counts = {mode: max((row["n"] for row in rows.values()), default=0) for mode, rows in by_mode.items()}
    return {mode: count for mode, count in counts.items() if count}


def cell(row: Mapping[str, Any], metric: str) -> str:
    """Return a value with its mark, or "–" if no question was scored."""
    found = row.get(metric)
    if found is None:
        return "–"
    verdict = row.get("vs_baseline", {}).get(metric, {}).get("verdict", "")
    return f"{found:.2f}{MARKS.get(verdict, '')}"


def mode_heatmap(by_mode: Table, routes: Sequence[str], names: Mapping[str, str], metric: str) -> Figure:
    """Draw a row for each of `routes` and a column for each mode with its number of questions.

    The colour runs from 0 to the best value.
    """
    modes = scored(by_mode)
    rows = [[by_mode[mode][route] for mode in modes] for route in routes]
    values = [[one.get(metric) for one in row] for row in rows]
    most = max((value for row in values for value in row if value is not None), default=1.0)
    columns = [f"{words(mode.replace('_', ' '), 22)} ({count})" for mode, count in modes.items()]
    figure = chart(
        130 + ROW * max(1, len(routes)),
        x=name_axis(columns, side="top", tickangle=-55, ticks="", ticklabeloverflow="allow"),
        y={**row_axis([words(names[route], 36) for route in routes]), "ticks": ""},
        margin={"l": 8, "r": 85, "t": 8, "b": 8},  # for the last column's slanted name
    )
    add_cells(
        figure,
        values,
        text=[[cell(one, metric) for one in row] for row in rows],
        customdata=[[_hover(one, metric) for one in row] for row in rows],
        texttemplate="%{text}",
        textfont={"size": 12},
        zmin=0,
        zmax=most or 1.0,
        hoverongaps=False,
        hovertemplate="<b>%{customdata}</b><extra></extra>",
    )
    return figure


def _hover(row: Mapping[str, Any], metric: str) -> str:
    found = row.get(metric)
    if found is None:
        return "no question was scored"
    one = row.get("vs_baseline", {}).get(metric)
    said = f"{found:.3f} over {row['n']}"
    if one is None:
        return said
    delta = number(one["delta"], signed=True)
    return f"{said}<br>{delta}: {words(one['verdict'], 40)} ({p_value(one['p_holm'])} after Holm)"
