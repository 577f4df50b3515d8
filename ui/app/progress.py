"""The progress of a background job, with the button that stops it."""

from __future__ import annotations

import streamlit as st

from core.domain.background_job import BackgroundJob
from core.domain.format import milliseconds
from ui.app.markup import md


def progress(job: BackgroundJob, text: str, *, key: str, left: bool = True) -> None:
    """Draw a bar with `text`, the estimated time left and a Stop button."""
    rest = f" · about {milliseconds(1000 * job.left)} left" if left and job.left is not None else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.share, text=md(f"{text}{rest}"))
        st.button("Stop", key=key, on_click=job.cancel)
