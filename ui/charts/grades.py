"""Grades: those of one question, what thresholds would decide over many, and how often grades are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.analysis.what_if.grading import bands
from core.domain.outputs import PassageGrade
from core.evaluation.calibration import Reliability
from core.evaluation.tuning.calibrate import Curve
from ui.charts import style
from ui.charts.style import KINDS, Figure, chart, words

ABOVE, BETWEEN, BELOW = KINDS["RETRIEVER"][1], KINDS["LLM"][1], KINDS["GUARDRAIL"][1]
LOST = KINDS["EVALUATOR"][1]
BANDS = (("trusted", ABOVE), ("in between", BETWEEN), ("doubted", BELOW))
COLOURS = (ABOVE, BETWEEN, LOST, KINDS["CHAIN"][1], KINDS["TOOL"][1])
NAME_CHARACTERS = 60


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
    names = [words(titles.get(one.id, one.id), 38) for one in order]
    marks = [f"  ◆{grade}" if (grade := gold.get(one.id, 0)) > 0 else "" for one in order]
    labels = [f"<b>{name}{mark}</b>" if mark else name for name, mark in zip(names, marks, strict=True)]
    figure = chart(
        70 + 22 * max(1, len(order)),
        x={"range": [-0.02, 1.1], "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]},
        y=style.row_axis(labels) | {"range": [max(1, len(order)) - 0.4, -0.6]},
    )
    for (name, colour), some in zip(BANDS, (found.above, found.between, found.below), strict=True):
        labelled = [gold.get(one.id, 0) > 0 for one in some]
        style.add_points(
            figure,
            [(one.grade, rows[one.id], words(titles.get(one.id, one.id), 80)) for one in some],
            "%{customdata}<br>grade %{x:.3f}",
            {
                "color": colour,
                "size": [13 if one else 9 for one in labelled],
                "symbol": ["diamond" if one else "circle" for one in labelled],
            },
            name=name,
            mode="markers+text",
            text=[f" {one.grade:.3f}" for one in some],
            textposition="middle right",
            cliponaxis=False,
        )
    for edge, was in ((low, stored[0]), (high, stored[1])):
        figure.add_vline(x=edge, line={"color": style.ink(), "width": 1.5})
        if abs(was - edge) > 0.0005:
            figure.add_vline(x=was, line={"color": style.ink(), "width": 1, "dash": "dot"})
    return figure


def describe_strip(
    grades: Sequence[PassageGrade], gold: Mapping[str, int], low: float, high: float, decision: str
) -> str:
    """Describe how many passages are on each side of the thresholds, and the decision."""
    found = bands(grades, low, high)
    labelled = sum(gold.get(one.id, 0) > 0 for one in (*found.above, *found.between, *found.below))
    return (
        f"Passages graded {high:.3g} or higher: {len(found.above)}, in between: {len(found.between)}, "
        f"below {low:.3g}: {len(found.below)}, without a grade: {len(found.without)}; ◆ marks {labelled} "
        f"labelled. Decision: {decision or 'none'}."
    )


def calibration_curves(found: Mapping[str, Curve | None], marks: Mapping[str, float], name: str) -> Figure:
    """Draw precision and recall for each part of the questions: of two the first dotted, the second solid.

    `marks` maps names of thresholds to their values, each drawn as a line; `name` is the axis title.
    """
    figure = chart(
        380,
        x={"title": words(name, NAME_CHARACTERS), "hoverformat": ".3g"},
        y={"title": "share", "range": [-0.03, 1.05]},
        hovermode="x",
        legend={"orientation": "h", "y": -0.2, "yanchor": "top"},
        margin={"l": 8, "r": 8, "t": 26, "b": 8},
    )
    for (part, curve), dash in zip(found.items(), ("dot", "solid")[-len(found) :], strict=True):
        if curve is None:
            continue
        for measure, colour in (("precision", ABOVE), ("recall", BETWEEN)):
            figure.add_scatter(
                x=curve.thresholds,
                y=getattr(curve, measure),
                name=f"{measure}, {words(part, NAME_CHARACTERS)}",
                mode="lines",
                line={"color": colour, "dash": dash, "shape": "vh"},
                hovertemplate="%{y:.2f}<extra>%{fullData.name}</extra>",
            )
    least = min(marks.values(), default=0.0)
    for mark, value in marks.items():
        text, dash = words(f"{mark} {value:.3g}", NAME_CHARACTERS), "solid" if mark == "chosen" else "dash"
        style.add_threshold(figure, value, text, dash=dash, left=value == least and len(marks) > 1)
    return figure


def reliability_curve(curves: Mapping[str, Reliability]) -> Figure:
    """Draw the share of correct cases against the mean grade of each bin, one line for each name.

    A larger point stands for more cases. On the diagonal, grades are probabilities; below it they are
    overconfident.
    """
    axis = {"range": [-0.03, 1.03]}
    figure = chart(360, x={**axis, "title": "mean grade"}, y={**axis, "title": "share correct"})
    style.add_line(figure, [0, 1], [0, 1], {"color": style.faint(), "dash": "dash"})
    for at, (name, curve) in enumerate(curves.items()):
        most = max((one.n for one in curve.bins), default=1)
        style.add_points(
            figure,
            [(one.mean, one.share, one.n) for one in curve.bins],
            "grade %{x:.2f}, correct %{y:.2f}<br>%{customdata} cases",
            {"size": [6 + 12 * (one.n / most) ** 0.5 for one in curve.bins]},
            name=words(name, NAME_CHARACTERS),
            mode="lines+markers",
            line={"color": COLOURS[at % len(COLOURS)]},
        )
    return figure


def describe_reliability(curves: Mapping[str, Reliability]) -> str:
    """Describe the curves by their calibration errors and Brier scores."""
    figures = "; ".join(
        f"{name}: {curve.n} cases, calibration error {curve.ece:.2f}, Brier score {curve.brier:.3f}"
        for name, curve in curves.items()
    )
    return f"Share of correct cases by grade. {figures or 'none'}."
