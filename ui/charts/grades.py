"""Grades against their thresholds: of one question, and what thresholds decide over many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.analysis.what_if.grading import ACTIONS, Edge, Tally, bands
from core.domain.outputs import PassageGrade
from ui.charts.style import KINDS, base, faint, ink, words

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
    *,
    dark: bool = False,
) -> Figure:
    """A point a passage on the axis of grades, best first; the thresholds as lines, the stored ones dotted
    where they differ. Labelled passages (grade 1-3) are diamonds and carry their grade.
    """
    import plotly.graph_objects as go

    found = bands(grades, low, high)
    order = [*found.above, *found.between, *found.below]
    rows = {one.id: at for at, one in enumerate(order)}
    figure = go.Figure()
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
        figure.add_vline(x=edge, line={"color": ink(dark=dark), "width": 1.5})
        if abs(was - edge) > 0.0005:
            figure.add_vline(x=was, line={"color": ink(dark=dark), "width": 1, "dash": "dot"})
    figure.update_layout(
        **base(dark=dark, height=70 + ROW * max(1, len(order))),
        xaxis={
            "range": [-0.02, 1.1],
            "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1],
            "gridcolor": faint(dark=dark),
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
        },
        yaxis={
            "range": [max(1, len(order)) - 0.4, -0.6],
            "tickvals": list(range(len(order))),
            "ticktext": [_label(titles.get(one.id, one.id), gold.get(one.id, 0)) for one in order],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticksuffix": "  ",
            "automargin": True,
        },
    )
    return figure


def strip_in_words(
    grades: Sequence[PassageGrade], gold: Mapping[str, int], low: float, high: float, decision: str
) -> str:
    """The strip in words."""
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


def threshold_curves(
    tallies: Sequence[Tally], edge: Edge, marks: Mapping[str, float], *, dark: bool = False
) -> Figure:
    """Against one threshold: above the number of questions by decision, below precision and recall of
    "correct" and the share of wrong discards. `marks` names thresholds that get a line.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.45, 0.55], vertical_spacing=0.07)
    at = [one.high if edge == "high" else one.low for one in tallies]
    for action, colour in zip(ACTIONS, (ABOVE, BETWEEN, BELOW), strict=True):
        figure.add_scatter(
            x=at,
            y=[one.counts[action] for one in tallies],
            name=action,
            stackgroup="counts",
            line={"color": colour, "width": 1, "shape": "hv"},
            row=1,
            col=1,
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
            row=2,
            col=1,
            hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>",
        )
    for name, value in marks.items():
        figure.add_vline(
            x=value,
            line={"color": ink(dark=dark), "width": 1.2, "dash": "dot" if name == "stored" else "solid"},
        )
        figure.add_annotation(
            x=value,
            y=1.02,
            yref="paper",
            yanchor="bottom",
            text=name,
            showarrow=False,
            font={"size": 11},
            xanchor="left" if name == "stored" else "right",
        )
    figure.update_layout(**base(dark=dark, height=430), hovermode="x unified")
    figure.update_layout(legend={"y": -0.16, "yanchor": "top"}, margin={"t": 26, "b": 8})
    axis = {"gridcolor": faint(dark=dark), "zeroline": False, "fixedrange": True, "automargin": True}
    figure.update_xaxes(**axis, range=[0, 1])
    figure.update_xaxes(title=f"threshold “{edge}”", row=2, col=1)
    figure.update_yaxes(**axis, title="questions", row=1, col=1)
    figure.update_yaxes(**axis, title="share", range=[-0.03, 1.05], row=2, col=1)
    return figure


def _label(title: str, grade: int) -> str:
    text = words(title, 38)
    return f"<b>{text}  ◆{grade}</b>" if grade > 0 else text
