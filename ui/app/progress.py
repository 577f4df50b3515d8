"""The progress of background work, with the button that stops it or the time it has taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import streamlit as st

from core.corpus import builds
from core.domain.background_job import BackgroundJob
from core.domain.format import milliseconds
from ui.app import redraw, say
from ui.app.markup import md

J = TypeVar("J", bound=BackgroundJob)
POLL_S = 0.5  # seconds between looks at a job


def progress(job: BackgroundJob, text: str, *, key: str, left: bool = True) -> None:
    """Draw a bar with `text`, the estimated time left and a Stop button."""
    rest = f" · about {milliseconds(1000 * job.left)} left" if left and job.left is not None else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.share, text=md(f"{text}{rest}"))
        st.button("Stop", key=key, on_click=job.cancel)


def follow(job: J | None, text: Callable[[J], str], *, key: str) -> bool:
    """Draw the progress of a job until it ends, with its `text` asked each time; return whether it runs."""
    if job is None or job.done:
        return False
    _follow(job, partial(text, job), key)
    return True


def ended(job: BackgroundJob | None, what: str, stopped: str) -> bool:
    """Draw why a job failed, or `stopped` if it was stopped. Return whether nothing was drawn."""
    if job is not None and job.error:
        say.error(f"{what} failed: {job.error}")
    elif job is not None and job.cancelled:
        say.caption(stopped)
    return job is None or not (job.error or job.cancelled)


@st.fragment(run_every=POLL_S)
def _follow(job: BackgroundJob, text: Callable[[], str], key: str) -> None:
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
