"""Progress of the first start's preparations, and what works meanwhile."""

from __future__ import annotations

import streamlit as st

from core.evaluation import first_start
from ui.app import state
from ui.app.markup import md


def begin() -> None:
    """Start the preparations once a process, before the list of running jobs is drawn."""
    first_start.begin(state.engine())


def draw() -> None:
    """Draw a line for each preparation that is running, failed or stopped, with a button to continue it."""
    engine = state.engine()
    for job in first_start.known(engine.settings.home):
        if not job.done:
            st.caption(md(f"{job.title}: {job.part.meanwhile}"))
        elif job.error is not None:
            st.warning(md(f"{job.title} failed: {job.error}"))
        elif job.cancelled:
            st.caption(md(f"{job.title}: stopped. {job.part.meanwhile}"))
        if job.done and not job.complete:
            st.button(
                "Go on" if job.error is None else "Try again",
                key=f"first_start:{job.part.name}",
                on_click=first_start.again,
                args=(engine, job),
            )
