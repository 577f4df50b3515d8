"""Precision and recall against a threshold, on the questions it was chosen on and on those held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.evaluation.tuning.curves import Curve
from ui.charts.style import KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PRECISION, RECALL = KINDS["RETRIEVER"][1], KINDS["LLM"][1]
DASHES = ("dot", "solid")  # the questions chosen on, those held out
LONG = 60


def curves(
    found: Mapping[str, Curve | None], marks: Mapping[str, float], name: str, *, dark: bool = False
) -> Figure:
    """A line for precision and one for recall a part of the questions: the first part dotted, the second
    solid. `marks` names thresholds that get a line; `name` is what the threshold is called.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for (part, curve), dash in zip(found.items(), DASHES, strict=False):
        if curve is None:
            continue
        for measure, colour, values in (
            ("precision", PRECISION, curve.precision),
            ("recall", RECALL, curve.recall),
        ):
            figure.add_scatter(
                x=curve.thresholds,
                y=values,
                name=f"{measure}, {words(part, LONG)}",
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2 if dash == "solid" else 1.5, "shape": "vh"},
                hovertemplate="%{y:.2f}<extra>%{fullData.name}</extra>",
            )
    left = min(marks, key=lambda one: marks[one], default=None)
    for mark, value in marks.items():
        figure.add_vline(
            x=value,
            line={"color": ink(dark=dark), "width": 1.3, "dash": "solid" if mark == "chosen" else "dash"},
        )
        figure.add_annotation(
            x=value,
            y=1.0,
            yref="paper",
            yanchor="bottom",
            text=words(f"{mark} {value:.3g}", LONG),
            showarrow=False,
            xanchor="right" if mark == left and len(marks) > 1 else "left",
            font={"size": 11},
        )
    axis = {"gridcolor": faint(dark=dark), "zeroline": False, "fixedrange": True, "automargin": True}
    figure.update_layout(**base(dark=dark, height=380), hovermode="x")
    figure.update_layout(legend={"y": -0.2, "yanchor": "top"}, margin={"t": 26})
    figure.update_xaxes(**axis, title=words(name, LONG), hoverformat=".3g")
    figure.update_yaxes(**axis, title="share", range=[-0.03, 1.05])
    return figure
