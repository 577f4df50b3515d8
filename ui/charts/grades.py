"""Passage grades of one question, and what thresholds would decide over many questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.analysis.what_if.grading import ACTIONS, Edge, Tally, bands
from core.domain.outputs import PassageGrade
from ui.charts.style import KINDS, add_threshold, chart, ink, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 22  # pixels
ABOVE, BETWEEN, BELOW = KINDS["RETRIEVER"][1], KINDS["LLM"][1], KINDS["GUARDRAIL"][1]
LOST = KINDS["EVALUATOR"][1]
BANDS = (("trusted", ABOVE), ("in between", BETWEEN), ("doubted", BELOW))


def grade_strip(
    grades: Sequence[PassageGrade],
    titles: Mapping[str, str],
    gold: Mapping[str, int],
    low: float,
    high: float,
    stored: tuple[float, float],
) -> Figure:
    """Draw each passage's grade, best first, with the thresholds as lines.

    Stored thresholds are dotted if they differ. Labelled passages (grades 1 to 3) are diamonds.
    """
    found = bands(grades, low, high)
    order = [*found.above, *found.between, *found.below]
    rows = {one.id: at for at, one in enumerate(order)}
    figure = chart(
        70 + ROW * max(1, len(order)),
        x={"range": [-0.02, 1.1], "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]},
        y=row_axis([_label(titles.get(one.id, one.id), gold.get(one.id, 0)) for one in order])
        | {"range": [max(1, len(order)) - 0.4, -0.6]},
    )
    for (name, colour), some in zip(BANDS, (found.above, found.between, found.below), strict=True):
        figure.add_scatter(
            x=[one.grade for one in some],
            y=[rows[one.id] for one in some],
            name=name,
            mode="markers+text",
            text=[f" {one.grade:.3f}" for one in some],
            textposition="middle right",
            cliponaxis=False,
            marker={
                "color": colour,
                "size": [13 if gold.get(one.id, 0) > 0 else 9 for one in some],
                "symbol": ["diamond" if gold.get(one.id, 0) > 0 else "circle" for one in some],
            },
            customdata=[words(titles.get(one.id, one.id), 80) for one in some],
            hovertemplate="%{customdata}<br>grade %{x:.3f}<extra></extra>",
        )
    for edge, was in ((low, stored[0]), (high, stored[1])):
        figure.add_vline(x=edge, line={"color": ink(), "width": 1.5})
        if abs(was - edge) > 0.0005:
            figure.add_vline(x=was, line={"color": ink(), "width": 1, "dash": "dot"})
    return figure


def describe_strip(
    grades: Sequence[PassageGrade], gold: Mapping[str, int], low: float, high: float, decision: str
) -> str:
    """Describe the strip."""
    found = bands(grades, low, high)
    labelled = sum(gold.get(one.id, 0) > 0 for one in (*found.above, *found.between, *found.below))
    counts = (
        f"Passages graded {high:.3g} or higher: {len(found.above)}, in between: {len(found.between)}, "
        f"below {low:.3g}: {len(found.below)}"
    )
    if found.without:
        counts += f", without a grade: {len(found.without)}"
    marked = f"; ◆ marks {labelled} labelled" if labelled else ""
    return f"{counts}{marked}. Decision: {decision or 'none'}."


def threshold_curves(tallies: Sequence[Tally], edge: Edge, marks: Mapping[str, float]) -> Figure:
    """Draw decisions against one threshold.

    The upper part counts questions by decision. The lower part shows precision and recall of "correct" and
    the share of wrong discards. `marks` maps names of thresholds to values that get a line.
    """
    figure = chart(
        430,
        x={"range": [0, 1], "title": f"threshold “{edge}”", "anchor": "y2"},
        y={"title": "questions", "domain": [0.582, 1]},
        hovermode="x unified",
    )
    lower = figure.layout.yaxis.to_plotly_json() | {
        "title": "share",
        "range": [-0.03, 1.05],
        "domain": [0, 0.512],
    }
    figure.update_layout(yaxis2=lower, legend={"y": -0.16, "yanchor": "top"}, margin={"t": 26})
    at = [one.high if edge == "high" else one.low for one in tallies]
    for action, colour in zip(ACTIONS, (ABOVE, BETWEEN, BELOW), strict=True):
        figure.add_scatter(
            x=at,
            y=[one.counts[action] for one in tallies],
            name=action,
            stackgroup="counts",
            line={"color": colour, "width": 1, "shape": "hv"},
            hovertemplate="%{y} " + action + "<extra></extra>",
        )
    shares = (
        ("precision of “correct”", ABOVE, "solid", [one.precision for one in tallies]),
        ("recall of “correct”", BETWEEN, "dash", [one.recall for one in tallies]),
        ("wrong discards", LOST, "dot", [one.lost for one in tallies]),
    )
    for name, colour, dash, values in shares:
        figure.add_scatter(
            x=at,
            y=values,
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash},
            yaxis="y2",
            hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>",
        )
    for name, value in marks.items():
        stored = name == "stored"
        add_threshold(figure, value, name, dash="dot" if stored else "solid", left=not stored)
    return figure


def _label(title: str, grade: int) -> str:
    text = words(title, 38)
    return f"<b>{text}  ◆{grade}</b>" if grade > 0 else text
