"""Which token of a passage answers to which of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.analysis.token_matches import TokenMatch
from ui.charts.style import ERROR, base, scale, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 24  # pixels
NAMED = 60  # passage tokens up to which each is named on its axis; beyond, only in the hover
LONG = 24  # characters of a token


def match_heatmap(match: TokenMatch, *, dark: bool = False) -> Figure:
    """The question's tokens (rows) by the passage's (columns), stronger is more alike.

    A ring marks each row's maximum, whose sum is the score. Cosines below 0 look like 0.
    """
    import plotly.graph_objects as go

    cosines = match.passage.cosines
    rows = [words(token, LONG) for token in match.query[: len(cosines)]]
    columns = [words(token, LONG) for token in match.passage.passage]
    figure = go.Figure(
        go.Heatmap(
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            z=cosines,
            customdata=[[[row, column] for column in columns] for row in rows],
            hovertemplate="%{customdata[0]} – %{customdata[1]}<br>cosine %{z:.2f}<extra></extra>",
            colorscale=scale(dark=dark),
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    best = [row.index(max(row)) for row in cosines]
    figure.add_scatter(
        x=best,
        y=list(range(len(best))),
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": ERROR, "line": {"width": 2}},
        hoverinfo="skip",
        showlegend=False,
    )
    named = len(columns) <= NAMED
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "automargin": True}
    figure.update_layout(
        **base(dark=dark, height=(110 if named else 40) + ROW * max(1, len(rows))),
        xaxis={
            **axis,
            "side": "top",
            "tickangle": -60,
            "tickvals": list(range(len(columns))) if named else [],
            "ticktext": columns if named else [],
        },
        yaxis={
            **axis,
            "autorange": "reversed",
            "tickvals": list(range(len(rows))),
            "ticktext": rows,
            "ticksuffix": "  ",
        },
    )
    return figure


def match_in_words(match: TokenMatch, limit: int = 8) -> str:
    """The heatmap in words, for those who do not see it: the closest pairs, closest first."""
    pairs = sorted(zip(match.query, match.passage.best, strict=False), key=lambda pair: -pair[1][1])[:limit]
    told = "; ".join(f"{token} and {found}, cosine {cosine:.2f}" for token, (found, cosine) in pairs)
    return f"Tokens of the question and the most similar ones of the passage: {told or 'none'}."
