"""Values with their intervals: a row each, coloured by verdict, with lines to compare them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.evaluation.finding import NONE, Finding, sentence
from core.evaluation.verdict import Verdict, compared
from ui.charts import style
from ui.charts.style import KINDS, Figure, chart, words

LEADS, BEHIND, OPEN, OUT = "leads", "shown worse", "cannot be told apart", "not a candidate"
KAPPA = "Cohen's kappa"
WITHIN, BEYOND = "within the margin", "may be worse by more than the margin"
STYLES = {  # verdict: colour, symbol
    LEADS: (KINDS["EMBEDDING"][1], "diamond"),
    KAPPA: (KINDS["RETRIEVER"][1], "circle"),
    "shown better": (KINDS["CHAIN"][1], "circle"),
    WITHIN: (KINDS["CHAIN"][1], "circle"),
    OPEN: (KINDS["GUARDRAIL"][1], "circle-open"),
    NONE: (KINDS["GUARDRAIL"][1], "circle-open"),
    BEHIND: (style.ERROR, "square"),
    BEYOND: (style.ERROR, "circle-open"),
    OUT: (KINDS["GUARDRAIL"][1], "x-thin"),
}


class IntervalRow(NamedTuple):
    """One value with its interval."""

    id: str  # what a click on it returns; "" if nothing happens on a click
    title: str
    value: float
    ends: tuple[float, float] | None
    verdict: str  # one of STYLES
    hint: str  # shown on hover


def intervals(
    rows: Sequence[IntervalRow], about: str, lines: Mapping[str, float], *, form: str = ".2f"
) -> Figure:
    """Draw the rows in their order. `about` names the axis; `lines` are values by what they stand for, the
    first one solid, the others dashed. A point's first customdata value is its row's id.
    """
    shown = [*lines.values(), *(end for one in rows for end in (one.value, *(one.ends or ())))]
    low, high = min(shown, default=0.0), max(shown, default=1.0)
    pad = 0.04 * (high - low) or 0.02
    # by the values alone: on a narrow screen the names of the lines would stretch the axis
    x = {"title": words(about, 90), "tickformat": form, "range": [low - pad, high + pad]}
    figure = chart(
        96 + 24 * max(3, len(rows)),  # fewer would leave no room between the names of the lines and the ticks
        x=x,
        y=style.row_axis([words(one.title, 44) for one in rows]),
        margin={"l": 8, "r": 24, "t": 34, "b": 8},
    )
    for verdict, (colour, symbol) in STYLES.items():
        some = [(place, one) for place, one in enumerate(rows) if one.verdict == verdict]
        ends = [one.ends or (one.value, one.value) for _, one in some]
        bars = style.error_bars([one.value for _, one in some], ends, colour)
        points = [(one.value, place, [one.id, words(one.hint, 300)]) for place, one in some]
        marker = style.outlined(symbol, 10, colour)
        style.add_points(figure, points, "%{customdata[1]}", marker, name=verdict, error_x=bars)
    for number, (name, value) in enumerate(lines.items()):
        # Named in the legend, which has room on a narrow screen too.
        line = {"color": style.ink(), "width": 1.3, "dash": "dash" if number else "solid"}
        named = {"name": words(name, 40), "showlegend": True} if name else {}
        figure.add_shape(type="line", x0=value, x1=value, y0=0, y1=1, yref="paper", line=line, **named)
    return figure


def of_findings(found: Sequence[Finding]) -> Figure:
    """Draw the differences of findings that share a baseline and a metric, the largest first."""
    about = f"{found[0].metric}, difference from {found[0].baseline}" if found else ""
    rows = []
    for one in sorted(found, key=lambda one: -(one.estimate or 0.0)):
        verdict = f"shown {one.verdict}" if one.shown else NONE
        rows.append(IntervalRow("", one.subject, one.estimate or 0.0, one.interval, verdict, sentence(one)))
    return intervals(rows, about, {"": 0.0}, form="+.2~f")


def of_verdict(found: Verdict, named: Callable[[str], str], about: str) -> Figure:
    """Draw the differences that a verdict rests on, the closest route first, with its margin."""
    rows = []
    for one in found.pairs:
        verdict = WITHIN if one.low > -found.margin else BEYOND
        hint = compared(one, named)
        rows.append(IntervalRow("", named(one.other), one.delta, (one.low, one.high), verdict, hint))
    return intervals(rows, about, {"equal": 0.0, "margin": -found.margin}, form="+.2~f")
