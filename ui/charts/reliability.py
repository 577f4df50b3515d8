"""Whether grades mean what they say: the share that is right by the grade given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.evaluation.reliability import Reliability
from ui.charts.style import KINDS, base, faint, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = tuple(KINDS[kind][1] for kind in ("RETRIEVER", "LLM", "EVALUATOR", "CHAIN", "TOOL"))
LONG = 40  # characters of a name


def reliability_curve(curves: Mapping[str, Reliability], *, dark: bool = False) -> Figure:
    """One line a name: the mean grade of each bin against the share of it that is right.

    A point is the larger the more cases it stands for. On the diagonal grades are probabilities; below it
    they promise too much.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": faint(dark=dark), "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    for at, (name, curve) in enumerate(curves.items()):
        most = max((one.n for one in curve.bins), default=1)
        figure.add_scatter(
            x=[one.mean for one in curve.bins],
            y=[one.share for one in curve.bins],
            customdata=[one.n for one in curve.bins],
            name=words(name, LONG),
            mode="lines+markers",
            line={"color": COLOURS[at % len(COLOURS)]},
            marker={"size": [6 + 12 * (one.n / most) ** 0.5 for one in curve.bins]},
            hovertemplate="grade %{x:.2f}, correct %{y:.2f}<br>%{customdata} cases"
            "<extra>%{fullData.name}</extra>",
        )
    axis = {"range": [-0.03, 1.03], "fixedrange": True, "gridcolor": faint(dark=dark), "zeroline": False}
    figure.update_layout(
        **base(dark=dark, height=360),
        xaxis={**axis, "title": "mean grade", "automargin": True},
        yaxis={**axis, "title": "share correct", "automargin": True},
    )
    return figure


def reliability_in_words(curves: Mapping[str, Reliability]) -> str:
    """The curves in words, for those who do not see them."""
    figures = "; ".join(
        f"{name}: {curve.n} cases, calibration error {curve.ece:.2f}, Brier score {curve.brier:.3f}"
        for name, curve in curves.items()
    )
    return f"Share of correct cases by grade. {figures or 'none'}."
