"""Puts a chart on the page, with the words that stand for it and its numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st
from markupsafe import Markup

from ui.app.markup import EMPTY, show, table_of, tag
from ui.charts.numbers import numbers

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CONFIG = {"displayModeBar": False}
MOST = 500  # rows of a table of numbers: a heatmap of tokens has tens of thousands


def dark() -> bool:
    """Whether the browser shows the dark theme."""
    return st.context.theme.type == "dark"


def plot(figure: Figure, key: str, told: str, *, table: bool = True) -> None:
    """Draw `figure` as wide as the page; `in_words` says what it shows to those who do not see it. Its
    numbers are a table that opens below it, but for `table` False: where the same view has one.
    """
    st.plotly_chart(figure, theme=None, width="stretch", config=CONFIG, key=key, alt=told)
    if table and (rows := numbers(figure)):
        show(as_table(rows))


def as_table(rows: Sequence[Mapping[str, str]]) -> Markup:
    """Rows behind a click, with every column that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    body = [tag("tr", *(tag("td", row.get(name, ""), dir="auto") for name in names)) for row in rows[:MOST]]
    table = table_of(head, body)
    more = f"Showing the first {MOST:,} of {len(rows):,}." if len(rows) > MOST else ""
    shown = tag(
        "div",
        table,
        tag("div", more, css="dim") if more else EMPTY,
        css="rs-numbers",
        tabindex="0",
        role="region",
        aria_label="The numbers",
    )
    return tag("details", tag("summary", "Show numbers"), shown, css="rs rs-why-none")


def pick_point(figure: Figure, key: str, told: str) -> list[str]:
    """The same, and the first customdata of the points that are clicked, in a scatter of the figure."""
    event = st.plotly_chart(
        figure,
        theme=None,
        width="stretch",
        config=CONFIG,
        key=key,
        alt=told,
        on_select="rerun",
        selection_mode="points",
    )
    picked = [point.get("customdata") for point in event["selection"]["points"]]
    return [str(data[0] if isinstance(data, list) else data) for data in picked if data]
