"""Heatmaps: token matches, confusion matrices, and a metric by route and type of question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.analysis.term_contributions import TokenMatch
from core.domain.format import number, p_value
from ui.charts.style import ERROR, Figure, add_cells, add_points, chart, name_axis, outlined, row_axis, words

NAMED_TOKENS = 60  # a passage with more tokens names them only in the hover
TOKEN_CHARACTERS = 24
DESCRIBED_PAIRS = 8  # closest pairs of tokens that the description names
MARKS = {"better": "▲", "worse": "▼"}
Table = Mapping[str, Mapping[str, Mapping[str, Any]]]  # mode -> route -> figures


def match_heatmap(match: TokenMatch) -> Figure:
    """Draw the cosine of each question token (row) with each passage token (column).

    A ring marks each row's maximum; their sum is the score. Cosines below 0 look like 0.
    """
    cosines = match.passage.cosines
    rows = [words(token, TOKEN_CHARACTERS) for token in match.query[: len(cosines)]]
    columns = [words(token, TOKEN_CHARACTERS) for token in match.passage.passage]
    named = len(columns) <= NAMED_TOKENS
    figure = chart(
        (110 if named else 40) + 24 * max(1, len(rows)),
        x=name_axis(columns if named else [], side="top", tickangle=-60, ticks=""),
        y={**row_axis(rows), "ticks": ""},
    )
    about = [[[row, column] for column in columns] for row in rows]
    hover = "%{customdata[0]} – %{customdata[1]}<br>cosine %{z:.2f}<extra></extra>"
    add_cells(figure, cosines, customdata=about, hovertemplate=hover, zmin=0, zmax=1, xgap=1, ygap=1)
    best = [(row.index(max(row)), n, "") for n, row in enumerate(cosines)]
    add_points(figure, best, "", outlined("circle-open", 9, ERROR), showlegend=False)
    return figure


def describe_match(match: TokenMatch) -> str:
    """Describe the heatmap by its closest pairs of tokens, closest first."""
    pairs = sorted(zip(match.query, match.passage.best, strict=False), key=lambda pair: -pair[1][1])
    named = pairs[:DESCRIBED_PAIRS]
    closest = "; ".join(f"{token} and {found}, cosine {cosine:.2f}" for token, (found, cosine) in named)
    return f"Tokens of the question and the most similar ones of the passage: {closest or 'none'}."


def confusion(
    labels: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    true: str = "true class",
    taken: str = "classified as",
) -> Figure:
    """Draw the counts, coloured by their share of the row so that rare classes show too.

    Classes without any count are left out. `true` and `taken` name the rows and the columns.
    """
    kept = [n for n in range(len(labels)) if any(counts[n]) or any(row[n] for row in counts)]
    rows = [[counts[n][m] for m in kept] for n in kept]
    names = [words(labels[n].replace("_", " "), 24) for n in kept]
    figure = chart(
        120 + 34 * max(1, len(kept)),
        x=name_axis(names, side="top", title=taken),
        y={**row_axis(names), "title": true},
    )
    add_cells(
        figure,
        [[count / max(1, sum(row)) for count in row] for row in rows],
        text=rows,
        texttemplate="%{text}",
        zmin=0,
        zmax=1,
        customdata=[[[row, column] for column in names] for row in names],
        hovertemplate=f"{true} %{{customdata[0]}}, {taken} %{{customdata[1]}}: %{{text}}<extra></extra>",
    )
    return figure


def shares(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[Mapping[str, Any]]]
) -> Figure:
    """Draw means between 0 and 1 with their intervals: each of `values` has `mean` and `ci95`."""
    names = [words(name.replace("_", " "), 24) for name in rows]
    figure = chart(90 + 56 * len(rows), x=name_axis(list(columns), side="top"), y=row_axis(names))
    text = [
        [f"{one['mean']:.3f}<br>{one['ci95'][0]:.3f} to {one['ci95'][1]:.3f}" for one in row]
        for row in values
    ]
    means = [[one["mean"] for one in row] for row in values]
    add_cells(figure, means, text=text, texttemplate="%{text}", zmin=0, zmax=1, hoverinfo="skip")
    return figure


def scored(by_mode: Table) -> dict[str, int]:
    """Return the modes with scored questions and the largest number of questions scored for any route."""
    counts = {mode: max((row["n"] for row in rows.values()), default=0) for mode, rows in by_mode.items()}
    return {mode: count for mode, count in counts.items() if count}


def mode_heatmap(by_mode: Table, routes: Sequence[str], names: Mapping[str, str], metric: str) -> Figure:
    """Draw a row for each of `routes` and a column for each mode with its number of questions.

    The colour runs from 0 to the best value. Marks show differences from the baseline.
    """
    modes = scored(by_mode)
    rows = [[by_mode[mode][route] for mode in modes] for route in routes]
    values = [[one.get(metric) for one in row] for row in rows]
    columns = [f"{words(mode.replace('_', ' '), 22)} ({count})" for mode, count in modes.items()]
    figure = chart(
        130 + 30 * max(1, len(routes)),
        x=name_axis(columns, side="top", tickangle=-55, ticks="", ticklabeloverflow="allow"),
        y={**row_axis([words(names[route], 36) for route in routes]), "ticks": ""},
        margin={"l": 8, "r": 85, "t": 8, "b": 8},  # for the last column's slanted name
    )
    texts = [[cell(one, metric) for one in row] for row in rows]
    add_cells(
        figure,
        values,
        text=[[text for text, _ in row] for row in texts],
        customdata=[[hover for _, hover in row] for row in texts],
        texttemplate="%{text}",
        textfont={"size": 12},
        zmin=0,
        zmax=max((value for row in values for value in row if value), default=1.0),
        hoverongaps=False,
        hovertemplate="<b>%{customdata}</b><extra></extra>",
    )
    return figure


def cell(row: Mapping[str, Any], metric: str) -> tuple[str, str]:
    """Return a cell's value with its mark, and its hover text."""
    found, one = row.get(metric), row.get("vs_baseline", {}).get(metric, {})
    if found is None:
        return "–", "no question was scored"
    text, hover = f"{found:.2f}{MARKS.get(one.get('verdict', ''), '')}", f"{found:.3f} over {row['n']}"
    if "delta" in one:
        delta, p = number(one["delta"], signed=True), p_value(one["p_holm"])
        hover += f"<br>{delta}: {words(one['verdict'], 40)} ({p} after Holm)"
    return text, hover
