"""Puts a chart on the page, with the words that stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CONFIG = {"displayModeBar": False}


def dark() -> bool:
    """Whether the browser shows the dark theme."""
    return st.context.theme.type == "dark"


def plot(figure: Figure, key: str, told: str) -> None:
    """Draw `figure` as wide as the page; `told` says what it shows to those who do not see it."""
    st.plotly_chart(figure, theme=None, width="stretch", config=CONFIG, key=key, alt=told)


def pick_point(figure: Figure, key: str, told: str) -> list[str]:
    """The same, and the first customdata of the points that are clicked, in a scatter of the figure."""
    event = st.plotly_chart(
        figure, theme=None, width="stretch", config=CONFIG, key=key, alt=told, on_select="rerun",
        selection_mode="points",
    )  # fmt: skip
    picked = [point.get("customdata") for point in event["selection"]["points"]]
    return [str(data[0] if isinstance(data, list) else data) for data in picked if data]
