"""A forest plot of differences from a baseline: worse left of 0, better right of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.evaluation.finding import NONE, Finding, sentence
from ui.charts.style import ERROR, KINDS, chart, error_bars, ink, outlined, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels
COLOURS = {"better": KINDS["CHAIN"][1], "worse": ERROR, NONE: KINDS["GUARDRAIL"][1]}
SYMBOLS = {"better": "circle", "worse": "square", NONE: "circle-open"}


def forest(found: Sequence[Finding], *, dark: bool = False) -> Figure:
    """Draw the mean difference and interval of each finding, largest first.

    All findings share a baseline and a metric. Colour and symbol show the verdict.
    """
    about = f"{found[0].metric}, difference from {found[0].baseline}" if found else ""
    rows = sorted(found, key=lambda one: -(one.estimate or 0.0))
    figure = chart(
        90 + ROW * max(1, len(rows)),
        dark=dark,
        x={"title": words(about, 90), "tickformat": "+.2~f"},
        y=row_axis([words(one.subject, 44) for one in rows]),
    )
    for verdict, colour in COLOURS.items():
        some = [(n, one) for n, one in enumerate(rows) if (one.verdict if one.shown else NONE) == verdict]
        if not some:
            continue
        at = [one.estimate or 0.0 for _, one in some]
        ends = [one.interval or (x, x) for x, (_, one) in zip(at, some, strict=True)]
        figure.add_scatter(
            x=at,
            y=[n for n, _ in some],
            mode="markers",
            name=f"shown {verdict}" if verdict != NONE else verdict,
            marker=outlined(SYMBOLS[verdict], 11, colour),
            error_x=error_bars(at, ends, colour),
            customdata=[[words(one.subject, 80), words(sentence(one), 300)] for _, one in some],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    figure.add_vline(x=0, line={"color": ink(dark=dark), "width": 1})
    return figure
