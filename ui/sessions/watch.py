"""A run that is still under way, on a page about its comparison: progress, and Stop."""

from __future__ import annotations

import streamlit as st

from core.domain.types import Run
from core.engine.job import Job
from ui.app import redraw, state
from ui.app.markup import md
from ui.compare import results


def under_way(run: Run) -> bool:
    """Return whether the run still runs; if so, draw its progress and redraw the page when it ends."""
    job = state.engine().job(run.id)
    if job is not None and not job.done:
        _follow(job)
        return True
    if run.status == "running":
        st.info("Another process is still executing this run. The comparison appears when it has ended.")
        st.button("Refresh", key=f"look_again:{run.id}")
        return True
    return False


@st.fragment(run_every=results.POLL_S)
def _follow(job: Job) -> None:
    if job.done:
        redraw.page()
    run = job.snapshot()
    done, total = len(run.results), len(run.results) + len(job.pending())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(done / max(1, total), text=md(f"{done} of {total} routes · {results.at_work(job)[1]}"))
        st.button("Stop", key=f"stop:{run.id}", on_click=job.cancel)
