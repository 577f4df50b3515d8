"""The progress of background work, with the button that stops it or the time it has taken."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.corpus import builds
from core.domain.background_job import BackgroundJob
from core.domain.format import milliseconds
from ui.app import redraw, say
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


@st.fragment(run_every=0.5)
def follow_work(name: str, text: str) -> None:
    """Draw `text` and the time of work in the background, whose Stop is in the sidebar, until it ends."""
    work = builds.get(name)
    if work is None or work.done:
        redraw.page()
    else:
        say.caption(f"{text}, {work.seconds:.0f} s")
