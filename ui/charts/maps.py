"""Maps: embeddings on a plane, and the most visited part of a graph walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.analysis.embedding_map import Kind, Plane, Point
from core.analysis.walks import NodePosition
from core.domain.outputs import Walk
from ui.charts.style import Figure, add_line, add_points, chart, faint, ink, outlined, paper, pick, words

# Okabe & Ito's colours. Each kind also has its own symbol, so colour is never the only difference.
LOOK: Mapping[Kind, tuple[str, str, str, int]] = {
    "passage": ("passage", "circle", "#0072B2", 8),
    "imagined": ("hypothetical passage", "square", "#CC79A7", 11),
    "text": ("query variant", "diamond", "#E69F00", 11),
    "stored": ("text in the index for the passage", "cross", "#009E73", 11),
    "question": ("question", "star", "", 17),
}
ON_DARK = {"#0072B2": "#56B4E9"}  # the darker blue would be hard to see
LABELLED, CHOSEN = "#009E73", "#D55E00"
LINES = {
    "mention": ("passage mentions phrase", "", "solid"),
    "relation": ("phrases are related", "#009E73", "solid"),
    "alike": ("phrases are alike", "#CC79A7", "dot"),
}
COLUMNS = (
    ("walk begins", "diamond", "#E69F00", "middle left"),
    ("phrase reached", "circle", "#009E73", "top center"),
    ("passage, by rank", "square", "#0072B2", "middle right"),
)


def query_map(
    points: Sequence[Point],
    placed: Plane,
    *,
    gold: Mapping[str, int] | None = None,
    chosen: str | None = None,
) -> Figure:
    """Draw a symbol for each kind of point. Labelled passages and the `chosen` one are ringed."""
    figure = chart(520, x=_component("first", placed.explained[0]))
    # Equal units on both axes, else distances would mislead.
    figure.update_yaxes({**_component("second", placed.explained[1]), "scaleanchor": "x"})
    grades, at = gold or {}, [(float(x), float(y)) for x, y in placed.xy[:, :2]]
    for kind, (label, symbol, colour, size) in LOOK.items():
        add_points(
            figure,
            [
                (*place, [one.key if kind == "passage" else "", *hover(one, grades)])
                for one, place in zip(points, at, strict=True)
                if one.kind == kind
            ],
            "<b>%{customdata[1]}</b><br>%{customdata[2]}",
            {
                "symbol": symbol,
                "size": size,
                "color": pick(colour, ON_DARK.get(colour, colour)) or ink(),
                "opacity": 0.85 if kind == "passage" else 1.0,
                "line": {"width": 0.5, "color": paper()},
            },
            name=label,
            mode="markers+text",
            text="question" if kind == "question" else None,
            textposition="top center",
        )
    passages = [(one.key, place) for one, place in zip(points, at, strict=True) if one.kind == "passage"]
    for label, rings, colour, size in (
        ("labelled", [place for key, place in passages if grades.get(key, 0) > 0], LABELLED, 16),
        ("chosen passage", [place for key, place in passages if key == chosen], CHOSEN, 23),
    ):
        ring = outlined("circle-open", size, colour)
        add_points(figure, [(*place, "") for place in rings], "", ring, name=label)
    return figure


def _component(name: str, share: float) -> dict[str, Any]:
    return {
        "title": {"text": f"{name} component, {share:.0%} of the variance", "font": {"size": 11}},
        "showticklabels": False,
        "fixedrange": False,
        "zeroline": True,
        "zerolinecolor": faint(),
    }


def hover(point: Point, gold: Mapping[str, int]) -> list[str]:
    """Return the lines of a point's hover text: its label and its origin."""
    by = f"{len(point.routes)} routes" if len(point.routes) > 2 else ", ".join(point.routes)
    if point.kind == "passage":
        origin = f"in the top of {by or 'no route'}"
        origin += f" · grade {gold[point.key]}" if gold.get(point.key) else ""
    else:
        origin = point.key if point.kind == "question" else f"by {by}"
    return [words(point.label, 90), words(origin, 140)]


def describe_map(placed: Plane) -> str:
    """Describe how much variance the axes show and how far distances on the map can be trusted."""
    share = sum(placed.explained)
    if not share:
        return "All points have the same vector, so there is no variance to show."
    worth = "rough: points that look close may be far apart"
    if share >= 0.5:
        worth = "close to the real ones" if share >= 0.8 else "approximate"
    first, second = placed.explained
    axes = f"The two axes show {share:.0%} of the variance ({first:.0%} and {second:.0%})"
    return f"{axes}: distances on the map are {worth}."


def walk_map(walk: Walk, places: Sequence[NodePosition], names: Sequence[str]) -> Figure:
    """Draw the walk: a node's area is its share of the walk's time, and `names` are the nodes' labels."""
    rows = max((sum(place.column == column for place in places) for column in range(3)), default=1)
    figure = chart(
        90 + 36 * max(4, rows),
        x={"visible": False, "range": [-0.75, 3.15]},
        y={"visible": False, "range": [-0.02, 1.05]},
    )
    for kind, (label, colour, dash) in LINES.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for edge in walk.edges:
            if edge.kind == kind:
                a, b = places[edge.a], places[edge.b]
                # An edge within a column bends to the left, clear of the labels.
                x += [a.column, (a.column + b.column) / 2 - 0.2 * (a.column == b.column), b.column, None]
                y += [1 - a.height, 1 - (a.height + b.height) / 2, 1 - b.height, None]
        line = {"width": 1.2, "color": colour or pick("#a8a49b", "#6b7480"), "dash": dash, "shape": "spline"}
        if x:
            add_line(figure, x, y, line, name=label, opacity=0.7)
    most = max((node.score for node in walk.nodes), default=1.0)
    nodes = list(zip(walk.nodes, places, names, strict=True))
    for column, (label, symbol, colour, side) in enumerate(COLUMNS):
        here = [one for one in nodes if one[1].column == column]
        add_points(
            figure,
            [(column, 1 - at.height, [words(name, 120), node.score, node.seed]) for node, at, name in here],
            "<b>%{customdata[0]}</b><br>%{customdata[1]:.2%} of the walk"
            "<br>%{customdata[2]:.2%} of the restarts",
            {
                "symbol": symbol,
                "size": [7 + 15 * (node.score / most) ** 0.5 for node, _, _ in here],
                "color": pick(colour, ON_DARK.get(colour, colour)),
                "line": {"width": 0.5, "color": paper()},
            },
            name=label,
            mode="markers+text",
            text=[words(name, 26) for _, _, name in here],
            textposition=side,
            textfont={"size": 11, "color": ink()},
            cliponaxis=False,
        )
    return figure
