"""The Latency page: one run's times, what they went into, the same over all sessions, and tokens."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.domain.types import Run
from ui.app.tabs import tabs
from ui.latency import run as latency_run
from ui.latency import sessions, time_breakdown

TAB = "latency_tab"


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run) -> None:
    """Draw the page below the line about the run."""
    views: dict[str, Callable[[], None]] = {
        "This run": lambda: latency_run.draw(run),
        "Where the time goes": lambda: time_breakdown.draw(run),
        "Over all sessions": lambda: sessions.draw(run),
        "Tokens and cost": lambda: sessions.tokens(run),
    }
    tabs(views, TAB)
