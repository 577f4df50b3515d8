"""Reliability diagrams: the share of correct cases by grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.evaluation.calibration import Reliability
from ui.charts.style import KINDS, chart, faint, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = tuple(KINDS[kind][1] for kind in ("RETRIEVER", "LLM", "EVALUATOR", "CHAIN", "TOOL"))
NAME_CHARACTERS = 40


def reliability_curve(curves: Mapping[str, Reliability]) -> Figure:
    """Draw the share of correct cases against the mean grade of each bin, one line for each name.

    A larger point stands for more cases. On the diagonal, grades are probabilities; below it they are
    overconfident.
    """
    axis = {"range": [-0.03, 1.03]}
    figure = chart(360, x={**axis, "title": "mean grade"}, y={**axis, "title": "share correct"})
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": faint(), "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    for at, (name, curve) in enumerate(curves.items()):
        most = max((one.n for one in curve.bins), default=1)
        figure.add_scatter(
            x=[one.mean for one in curve.bins],
            y=[one.share for one in curve.bins],
            customdata=[one.n for one in curve.bins],
            name=words(name, NAME_CHARACTERS),
            mode="lines+markers",
            line={"color": COLOURS[at % len(COLOURS)]},
            marker={"size": [6 + 12 * (one.n / most) ** 0.5 for one in curve.bins]},
            hovertemplate="grade %{x:.2f}, correct %{y:.2f}<br>%{customdata} cases"
            "<extra>%{fullData.name}</extra>",
        )
    return figure


def describe_reliability(curves: Mapping[str, Reliability]) -> str:
    """Describe the curves by their calibration errors and Brier scores."""
    figures = "; ".join(
        f"{name}: {curve.n} cases, calibration error {curve.ece:.2f}, Brier score {curve.brier:.3f}"
        for name, curve in curves.items()
    )
    return f"Share of correct cases by grade. {figures or 'none'}."
