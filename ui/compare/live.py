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
    """Draw the progress and the columns so far; redraw the page when the run ends."""
    if job.done:
        redraw.page()
    run = job.snapshot()
    done, total = len(run.results), len(run.results) + len(job.pending())
    st.progress(done / max(1, total), text=md(f"{done} of {total} routes · {results.at_work(job)}"))
    results.draw(run, results.pending(job))


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
    waiting = missing(run)
    done, total = len(run.results), len(run.results) + len(waiting)
    st.progress(done / max(1, total), text=md(f"{done} of {total} routes · running in another process"))
    results.draw(run, waiting)


def missing(run: Run) -> list[Waiting]:
    """Return the requested routes that have no result yet."""
    ended = [result.route for result in run.results]
    names = [name for name in run.settings.get("routes", ()) if name not in ended]
    return [Waiting(title(name), running=False, step="not finished yet") for name in names]
