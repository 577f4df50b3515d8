"""Fitted fusion weights: the score that each list adds to its first passage, by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from ui.charts.style import KINDS, add_bar_ends, chart, ink, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 34  # pixels
NAMES = {"score": "its score, at the list's highest", "listed": "being in the list", "1/rank": "being first"}
COLOURS = dict(zip(FEATURES, (KINDS[kind][1] for kind in ("RETRIEVER", "EMBEDDING", "LLM")), strict=True))
HATCHES = dict(zip(FEATURES, ("", "/", "."), strict=True))


def weight_bars(fitted: FittedWeights) -> Figure:
    """Draw a bar for each list, largest first, split into the weights of its features."""
    rows = sorted(zip(fitted.lists, fitted.weights, strict=True), key=lambda one: -sum(one[1]))
    ends = [sum(value for value in row if value > 0) for _, row in rows]
    least = min((sum(value for value in row if value < 0) for _, row in rows), default=0.0)
    figure = chart(
        100 + ROW * len(rows),
        x={
            "range": [1.1 * least, 1.2 * (max(ends, default=1.0) or 1.0)],
            "title": "score that a list adds to its first passage",
            "zeroline": True,
            "zerolinecolor": ink(),
        },
        y=row_axis([words(LISTS[name], 40) for name, _ in rows]),
        barmode="relative",
        bargap=0.35,
    )
    for n, feature in enumerate(FEATURES):
        figure.add_bar(
            orientation="h",
            name=NAMES[feature],
            y=list(range(len(rows))),
            x=[row[n] for _, row in rows],
            marker={
                "color": COLOURS[feature],
                "pattern": {"shape": HATCHES[feature], "solidity": 0.3, "size": 6},
                "line": {"width": 0.5, "color": ink()},
            },
            customdata=[words(LISTS[name], 40) for name, _ in rows],
            hovertemplate="%{customdata}: " + NAMES[feature] + " gives %{x:+.3f}<extra></extra>",
        )
    add_bar_ends(figure, ends, [f" {sum(row):+.2f}" for _, row in rows])
    return figure
