"""The most visited part of a graph walk: its start, the phrases it reached, and passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from core.analysis.walks import NodePosition
from core.domain.outputs import Walk
from ui.charts.style import chart, ink, paper, pick, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 36  # pixels
LINES: Mapping[Literal["mention", "relation", "alike"], tuple[str, str, str]] = {
    "mention": ("passage mentions phrase", "", "solid"),
    "relation": ("phrases are related", "#009E73", "solid"),
    "alike": ("phrases are alike", "#CC79A7", "dot"),
}
COLUMNS = (
    ("walk begins", "diamond", "#E69F00", "middle left"),
    ("phrase reached", "circle", "#009E73", "top center"),
    ("passage, by rank", "square", "#0072B2", "middle right"),
)
ON_DARK = {"#0072B2": "#56B4E9"}
LABEL_CHARACTERS = 26


def walk_map(walk: Walk, places: Sequence[NodePosition], names: Sequence[str]) -> Figure:
    """Draw the walk: a node's area is its share of the walk's time, and `names` are the nodes' labels."""
    rows = max((sum(place.column == column for place in places) for column in range(3)), default=1)
    figure = chart(
        90 + ROW * max(4, rows),
        x={"visible": False, "range": [-0.75, 3.15]},
        y={"visible": False, "range": [-0.02, 1.05]},
    )
    for kind, (label, colour, dash) in LINES.items():
        tied = [edge for edge in walk.edges if edge.kind == kind]
        if tied:
            ends = [(places[edge.a], places[edge.b]) for edge in tied]
            figure.add_scatter(
                x=[x for a, b in ends for x in (a.column, _between(a, b), b.column, None)],
                y=[y for a, b in ends for y in (1 - a.height, 1 - _middle(a, b), 1 - b.height, None)],
                mode="lines",
                name=label,
                hoverinfo="skip",
                opacity=0.7,
                line={
                    "width": 1.2,
                    "color": colour or pick("#a8a49b", "#6b7480"),
                    "dash": dash,
                    "shape": "spline",
                },
            )
    most = max((node.score for node in walk.nodes), default=1.0)
    for column, (label, symbol, colour, side) in enumerate(COLUMNS):
        at = [n for n, place in enumerate(places) if place.column == column]
        if at:
            figure.add_scatter(
                x=[column] * len(at),
                y=[1 - places[n].height for n in at],
                mode="markers+text",
                name=label,
                textposition=side,
                cliponaxis=False,
                text=[words(names[n], LABEL_CHARACTERS) for n in at],
                textfont={"size": 11, "color": ink()},
                marker={
                    "symbol": symbol,
                    "size": [7 + 15 * (walk.nodes[n].score / most) ** 0.5 for n in at],
                    "color": pick(colour, ON_DARK.get(colour, colour)),
                    "line": {"width": 0.5, "color": paper()},
                },
                customdata=[[words(names[n], 120), walk.nodes[n].score, walk.nodes[n].seed] for n in at],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]:.2%} of the walk"
                "<br>%{customdata[2]:.2%} of the restarts<extra></extra>",
            )
    return figure


def _between(a: NodePosition, b: NodePosition) -> float:
    """Return where an edge passes: left of the column if it joins two nodes there, clear of their labels."""
    return (a.column + b.column) / 2 - (0.2 if a.column == b.column else 0)


def _middle(a: NodePosition, b: NodePosition) -> float:
    return (a.height + b.height) / 2
