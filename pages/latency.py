"""Latency: one run's times, what they went into, the same over all sessions, and tokens."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.domain.types import Run
from ui.app import opened
from ui.app.tabs import tabs
from ui.latency import run as latency_run
from ui.latency import sessions, time_breakdown

VIEWS = {
    "This run": latency_run.draw,
    "Where the time goes": time_breakdown.draw,
    "Over all sessions": sessions.draw,
    "Tokens and cost": sessions.tokens,
}


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def views(run: Run) -> None:
    """Draw the views of a run."""
    views = {name: partial(draw, run) for name, draw in VIEWS.items()}
    tabs(views, "latency_tab", {"This run": partial(latency_run.behind, run)})


run = opened.opened("where the time goes")
if run is not None:
    views(run)
    opened.link()
