"""Precision and recall against a threshold, on the questions it was chosen on and on held-out questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.evaluation.tuning.calibrate import Curve
from ui.charts.style import KINDS, add_threshold, chart, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PRECISION, RECALL = KINDS["RETRIEVER"][1], KINDS["LLM"][1]
DASHES = ("dot", "solid")  # the questions used to choose, the held-out questions
NAME_CHARACTERS = 60


def curves(found: Mapping[str, Curve | None], marks: Mapping[str, float], name: str) -> Figure:
    """Draw precision and recall for each part of the questions: the first part dotted, the second solid.

    `marks` maps names of thresholds to their values, each drawn as a line; `name` is the axis title.
    """
    figure = chart(
        380,
        x={"title": words(name, NAME_CHARACTERS), "hoverformat": ".3g"},
        y={"title": "share", "range": [-0.03, 1.05]},
        hovermode="x",
    )
    figure.update_layout(legend={"y": -0.2, "yanchor": "top"}, margin={"t": 26})
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
                name=f"{measure}, {words(part, NAME_CHARACTERS)}",
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2 if dash == "solid" else 1.5, "shape": "vh"},
                hovertemplate="%{y:.2f}<extra>%{fullData.name}</extra>",
            )
    left = min(marks, key=lambda one: marks[one], default=None)
    for mark, value in marks.items():
        add_threshold(
            figure,
            value,
            words(f"{mark} {value:.3g}", NAME_CHARACTERS),
            dash="solid" if mark == "chosen" else "dash",
            left=mark == left and len(marks) > 1,
        )
    return figure
