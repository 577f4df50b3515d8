"""Which route ranks which passage where: the form that still reads with twenty routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.charts.look import base, ink, scale, words
from core.moves import ranks
from core.reading import worked
from core.types import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 22  # pixels


def contenders(run: Run, *, depth: int, limit: int) -> list[str]:
    """Passages in any route's top `depth`, best first by the sum of reciprocal ranks, at most `limit`."""
    worth: dict[str, float] = {}
    for result in worked(run):
        for id, rank in ranks(result.hits).items():
            if rank <= depth:
                worth[id] = worth.get(id, 0.0) + 1 / rank
    return sorted(worth, key=lambda id: (-worth[id], id))[:limit]


def rank_matrix(
    run: Run, *, depth: int = 10, limit: int = 40, gold: Mapping[str, int] | None = None, dark: bool = False
) -> Figure:
    """Passages by routes, the rank in the cell, stronger is higher; `gold` grades (1-3) mark their rows."""
    import plotly.graph_objects as go

    gold = gold or {}
    ids = contenders(run, depth=depth, limit=limit)
    routes = worked(run)
    tables = [ranks(result.hits) for result in routes]
    labels = [label(run, id, gold.get(id, 0)) for id in ids]
    cells = [[table.get(id) for table in tables] for id in ids]
    figure = go.Figure(
        go.Heatmap(
            x=list(range(len(routes))),
            y=list(range(len(ids))),
            z=[[None if rank is None else strength(rank, depth) for rank in row] for row in cells],
            text=[["" if rank is None else str(rank) for rank in row] for row in cells],
            texttemplate="%{text}",
            textfont={"size": 12, **({"color": ink(dark=True)} if dark else {})},
            customdata=[
                [words(run.passages[id].title if id in run.passages else id, 80)] * len(routes) for id in ids
            ],
            hovertemplate="%{customdata}<br>rank %{text}<extra></extra>",
            hoverongaps=False,
            colorscale=scale(dark=dark),
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=2,
            ygap=2,
        )
    )
    figure.update_layout(
        **base(dark=dark, height=70 + ROW * max(1, len(ids))),
        xaxis={
            "side": "top",
            "tickvals": list(range(len(routes))),
            "ticktext": [words(result.title, 16) for result in routes],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
            "automargin": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": list(range(len(ids))),
            "ticktext": labels,
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
            "ticksuffix": "  ",
            "automargin": True,
        },
    )
    return figure


def label(run: Run, id: str, grade: int) -> str:
    """A row's name; a gold passage is bold and carries its grade."""
    passage = run.passages.get(id)
    text = words(passage.title if passage else id, 38)
    return f"<b>{text}  ◆{grade}</b>" if grade > 0 else text


def strength(rank: int, depth: int) -> float:
    """1 for the first rank, 0.25 for the last shown one; below `depth` nearly nothing."""
    if rank > depth:
        return 0.06
    return 1.0 - 0.75 * (rank - 1) / max(1, depth - 1)
