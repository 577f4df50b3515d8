"""Follows a run under way: the job runs in the engine's threads, this only looks at it."""

from __future__ import annotations

import streamlit as st

from core.engine import Job
from ui import results
from ui.markup import md

EVERY = 0.4  # seconds between looks


@st.fragment(run_every=EVERY)
def follow(job: Job) -> None:
    """Progress and the columns so far; when the run ends the whole page is drawn again, and this stops."""
    if job.done:
        st.rerun()
    run = job.snapshot()
    done, total = len(run.results), len(run.results) + len(job.pending())
    st.progress(done / max(1, total), text=md(f"{done} of {total} routes · {results.at_work(job)}"))
    results.draw(run, job)
