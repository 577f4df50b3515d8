"""Puts a chart on the page, with a description and its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from markupsafe import Markup

from ui.app.markup import fragment, show
from ui.charts import style
from ui.charts.numbers import numbers
from ui.charts.style import Figure

CONFIG = {"displayModeBar": False}
style.is_dark = lambda: st.context.theme.type == "dark"
MAX_ROWS = 500  # rows of a table of numbers: a heatmap of tokens has tens of thousands


def plot(figure: Figure, key: str, alt: str, *, table: bool = True) -> None:
    """Draw `figure` as wide as the page; `alt` describes it for screen readers.

    Its numbers are a table that opens below it, unless `table` is False because the view has one already.
    """
    st.plotly_chart(figure, theme=None, width="stretch", config=CONFIG, key=key, alt=alt)
    if table and (rows := numbers(figure)):
        show(as_table(rows))


def as_table(rows: Sequence[Mapping[str, str]]) -> Markup:
    """Return rows as a table behind a click, with every column that any row has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return fragment("app.numbers", names, rows[:MAX_ROWS], len(rows))


def pick_point(figure: Figure, key: str, alt: str, then: Callable[[str], None] | None = None) -> list[str]:
    """Draw `figure` and return the first customdata value of each point that was clicked.

    `then` is called with it before the page is drawn again.
    """

    def clicked() -> None:
        for value in _values(st.session_state[key]["selection"]["points"])[:1]:
            if then is not None:
                then(value)

    event = st.plotly_chart(
        figure,
        theme=None,
        width="stretch",
        config=CONFIG,
        key=key,
        alt=alt,
        on_select="rerun" if then is None else clicked,
        selection_mode="points",
    )
    return _values(event["selection"]["points"])


def _values(points: Sequence[Mapping[str, Any]]) -> list[str]:
    picked = [point.get("customdata") for point in points]
    return [str(data[0] if isinstance(data, list) else data) for data in picked if data]
