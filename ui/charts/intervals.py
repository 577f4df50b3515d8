"""Values with their intervals: a row each, coloured by verdict, with lines to compare them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.evaluation.finding import NONE, Finding, sentence
from core.evaluation.verdict import Verdict, compared
from ui.charts.style import ERROR, KINDS, chart, error_bars, ink, outlined, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 24  # pixels
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
    BEHIND: (ERROR, "square"),
    BEYOND: (ERROR, "circle-open"),
    OUT: (KINDS["GUARDRAIL"][1], "x-thin"),
}


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One value with its interval."""

    # what a click on it returns; "" if nothing happens on a click
    id: str
    title: str
    value: float
    ends: tuple[float, float] | None
    # one of STYLES
    verdict: str
    # shown on hover
    hint: str


def intervals(
    rows: Sequence[IntervalRow],
    about: str,
    lines: Mapping[str, float],
    *,
    form: str = ".2f",
) -> Figure:
    """Draw the rows in their order. `about` names the axis; `lines` are values by what they stand for, the
    first one solid, the others dashed. A point's first customdata value is its row's id.
    """
    figure = chart(
        96 + ROW * max(1, len(rows)),
        x={"title": words(about, 90), "tickformat": form},
        y=row_axis([words(one.title, 44) for one in rows]),
        margin={"l": 8, "r": 24, "t": 34, "b": 8},
    )
    for verdict, (colour, symbol) in STYLES.items():
        some = [(place, one) for place, one in enumerate(rows) if one.verdict == verdict]
        if not some:
            continue
        at = [one.value for _, one in some]
        figure.add_scatter(
            x=at,
            y=[place for place, _ in some],
            mode="markers",
            name=verdict,
            marker=outlined(symbol, 10, colour),
            error_x=error_bars(at, [one.ends or (one.value, one.value) for _, one in some], colour),
            customdata=[[one.id, words(one.hint, 300)] for _, one in some],
            hovertemplate="%{customdata[1]}<extra></extra>",
        )
    for number, (name, value) in enumerate(lines.items()):
        line = {"color": ink(), "width": 1, "dash": "dash" if number else "solid"}
        figure.add_vline(x=value, line=line)
        figure.add_annotation(
            x=value,
            y=0,
            yref="paper",
            yanchor="bottom",
            # to its own side, so that the names of two near lines stay apart
            xanchor="right" if value < max(lines.values()) else "left",
            text=f" {words(name, 40)} ",
            showarrow=False,
            font={"size": 11},
        )
    return figure


def of_findings(found: Sequence[Finding]) -> Figure:
    """Draw the differences of findings that share a baseline and a metric, the largest first."""
    about = f"{found[0].metric}, difference from {found[0].baseline}" if found else ""
    rows = [
        IntervalRow(
            "",
            one.subject,
            one.estimate or 0.0,
            one.interval,
            f"shown {one.verdict}" if one.shown else NONE,
            sentence(one),
        )
        for one in sorted(found, key=lambda one: -(one.estimate or 0.0))
    ]
    return intervals(rows, about, {"": 0.0}, form="+.2~f")


def of_verdict(found: Verdict, named: Callable[[str], str], about: str) -> Figure:
    """Draw the differences that a verdict rests on, the closest route first, with its margin."""
    rows = [
        IntervalRow(
            "",
            named(one.other),
            one.delta,
            (one.low, one.high),
            WITHIN if one.low > -found.margin else BEYOND,
            compared(one, named),
        )
        for one in found.pairs
    ]
    lines = {"equal": 0.0, "margin": -found.margin}
    return intervals(rows, about, lines, form="+.2~f")
