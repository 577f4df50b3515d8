"""The progress of a background job, with the button that stops it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.domain.background_job import BackgroundJob
from core.domain.format import milliseconds
from ui.app import redraw
from ui.app.markup import md

POLL_S = 0.5  # seconds between looks at a job


def progress(job: BackgroundJob, text: str, *, key: str, left: bool = True) -> None:
    """Draw a bar with `text`, the estimated time left and a Stop button."""
    rest = f" · about {milliseconds(1000 * job.left)} left" if left and job.left is not None else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.share, text=md(f"{text}{rest}"))
        st.button("Stop", key=key, on_click=job.cancel)


@st.fragment(run_every=POLL_S)
def follow(job: BackgroundJob, text: Callable[[], str], *, key: str) -> None:
    """Draw the progress of a job, with `text` asked anew each time, and redraw the page at its end."""
    if job.done:
        redraw.page()
    progress(job, text(), key=key)
