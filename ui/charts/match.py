"""Token matches of late interaction: question tokens by passage tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.analysis.term_contributions import TokenMatch
from ui.charts.style import ERROR, add_cells, chart, name_axis, outlined, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 24  # pixels
NAMED_TOKENS = 60  # a passage with more tokens names them only in the hover
TOKEN_CHARACTERS = 24


def match_heatmap(match: TokenMatch) -> Figure:
    """Draw the cosine of each question token (row) with each passage token (column).

    A ring marks each row's maximum; their sum is the score. Cosines below 0 look like 0.
    """
    cosines = match.passage.cosines
    rows = [words(token, TOKEN_CHARACTERS) for token in match.query[: len(cosines)]]
    columns = [words(token, TOKEN_CHARACTERS) for token in match.passage.passage]
    named = len(columns) <= NAMED_TOKENS
    figure = chart(
        (110 if named else 40) + ROW * max(1, len(rows)),
        x=name_axis(columns if named else [], side="top", tickangle=-60, ticks=""),
        y={**row_axis(rows), "ticks": ""},
    )
    add_cells(
        figure,
        cosines,
        customdata=[[[row, column] for column in columns] for row in rows],
        hovertemplate="%{customdata[0]} – %{customdata[1]}<br>cosine %{z:.2f}<extra></extra>",
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=1,
    )
    best = [row.index(max(row)) for row in cosines]
    figure.add_scatter(
        x=best,
        y=list(range(len(best))),
        mode="markers",
        marker=outlined("circle-open", 9, ERROR),
        hoverinfo="skip",
        showlegend=False,
    )
    return figure


def describe_match(match: TokenMatch, limit: int = 8) -> str:
    """Describe the heatmap by its `limit` closest pairs of tokens, closest first."""
    pairs = sorted(zip(match.query, match.passage.best, strict=False), key=lambda pair: -pair[1][1])[:limit]
    closest = "; ".join(f"{token} and {found}, cosine {cosine:.2f}" for token, (found, cosine) in pairs)
    return f"Tokens of the question and the most similar ones of the passage: {closest or 'none'}."
