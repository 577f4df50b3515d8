"""A map of embeddings: the question, generated texts and passages on a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.analysis.embedding_map import Kind, Plane, Point
from ui.charts.style import chart, faint, ink, paper, pick, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# Okabe & Ito's colours. Each kind also has its own symbol, so colour is never the only difference.
LOOK: Mapping[Kind, tuple[str, str, str, int]] = {
    "passage": ("passage", "circle", "#0072B2", 8),
    "imagined": ("hypothetical passage", "square", "#CC79A7", 11),
    "text": ("query variant", "diamond", "#E69F00", 11),
    "question": ("question", "star", "", 17),
}
ON_DARK = "#56B4E9"  # passages are small, so the darker blue would be hard to see
LABELLED, CHOSEN = "#009E73", "#D55E00"


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
    grades = gold or {}
    at = {kind: [n for n, one in enumerate(points) if one.kind == kind] for kind in LOOK}
    for kind, (label, symbol, colour, size) in LOOK.items():
        rows = at[kind]
        if not rows:
            continue
        figure.add_scatter(
            x=[float(placed.xy[n, 0]) for n in rows],
            y=[float(placed.xy[n, 1]) for n in rows],
            name=label,
            mode="markers+text" if kind == "question" else "markers",
            text=["question"] * len(rows) if kind == "question" else None,
            textposition="top center",
            marker={
                "symbol": symbol,
                "size": size,
                "color": pick(colour, ON_DARK) if kind == "passage" else colour or ink(),
                "opacity": 0.85 if kind == "passage" else 1.0,
                "line": {"width": 0.5, "color": paper()},
            },
            customdata=[
                [points[n].key if kind == "passage" else "", *hover(points[n], grades)] for n in rows
            ],
            hovertemplate="<b>%{customdata[1]}</b><br>%{customdata[2]}<extra></extra>",
        )
    ringed = [n for n in at["passage"] if grades.get(points[n].key, 0) > 0]
    picked = [n for n in at["passage"] if points[n].key == chosen]
    for label, rows, colour, size in (
        ("labelled", ringed, LABELLED, 16),
        ("chosen passage", picked, CHOSEN, 23),
    ):
        if rows:
            figure.add_scatter(
                x=[float(placed.xy[n, 0]) for n in rows],
                y=[float(placed.xy[n, 1]) for n in rows],
                name=label,
                mode="markers",
                hoverinfo="skip",
                marker={"symbol": "circle-open", "size": size, "color": colour, "line": {"width": 2.5}},
            )
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
        origin = f"in the top of {by}" if by else "in the top of no route"
        origin += f" · grade {gold[point.key]}" if gold.get(point.key) else ""
    elif point.kind == "question":
        origin = point.key
    else:
        origin = f"by {by}"
    return [words(point.label, 90), words(origin, 140)]


def describe_map(placed: Plane) -> str:
    """Describe how much variance the axes show and how far distances on the map can be trusted."""
    share = sum(placed.explained)
    if not share:
        return "All points have the same vector, so there is no variance to show."
    if share >= 0.8:
        worth = "distances on the map are close to the real ones"
    elif share >= 0.5:
        worth = "distances on the map are approximate"
    else:
        worth = "distances on the map are rough: points that look close may be far apart"
    first, second = placed.explained
    return f"The two axes show {share:.0%} of the variance ({first:.0%} and {second:.0%}): {worth}."
