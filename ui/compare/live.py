"""Follows a run under way: it runs in the engine's threads or in another process, this only looks at it."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.types import Run
from core.engine.job import Job
from ui.app import redraw, state
from ui.app.markup import md
from ui.app.routes import title
from ui.compare import results
from ui.components.grid import Waiting

POLL_S = 0.4  # seconds between looks at a job
ELSEWHERE = 2.0  # the same for a run that only the store knows


@st.fragment(run_every=POLL_S)
def follow(job: Job) -> None:
    """Draw the results so far with the progress; redraw the page when the run ends."""
    if job.done:
        redraw.page()
    results.draw(job.snapshot(), results.pending(job), results.at_work(job))


@st.fragment(run_every=ELSEWHERE)
def watch(run_id: str) -> None:
    """Follow a run of another process until it or its process has ended."""
    try:
        run, _ = state.find(run_id)
    except RouteScopeError as error:
        st.error(md(str(error)))  # deleted meanwhile, say
        return
    if run.status != "running":
        redraw.page()
    results.draw(run, missing(run), "running in another process")


def missing(run: Run) -> list[Waiting]:
    """Return the requested routes that have no result yet."""
    ended = [result.route for result in run.results]
    names = [name for name in run.settings.get("routes", ()) if name not in ended]
    return [Waiting(title(name), running=False, step="not finished yet") for name in names]
