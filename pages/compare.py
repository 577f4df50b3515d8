"""Compare: one question, every route side by side."""

from __future__ import annotations

import streamlit as st

from core.domain.types import Run
from core.engine.job import Job
from ui.app import corpora, link, page_title, say, state
from ui.compare import ask, results


def opened() -> tuple[Run | None, Job | None]:
    """Return the run to show and its job; draw one error if the link leads to no run."""
    run_id = st.session_state.get(state.RUN)
    if not run_id:
        return None, None
    with say.errors():
        run, job = state.find(run_id)
        if st.query_params.get("run") != run_id:
            link.show(run_id)  # back from another page: the address says again what is shown
        page_title.about(run.query.text)
        return run, job
    return None, None


def start(corpus: str) -> None:
    """Begin a run and look at it; what cannot be asked gets one clear message."""
    with say.errors():
        link.show(state.start(ask.request(corpus)).id)
        st.rerun()


corpus: str = st.session_state[state.CORPUS]
inputs, below = st.container(), st.container()
with below:
    run, job = opened()
under_way = job is not None and not job.done
with inputs:
    run_pressed, stop_pressed = ask.form(corpus, run, running=under_way)
    if run_pressed:
        start(corpus)
if stop_pressed and job is not None:
    job.cancel()
with below:
    if run is not None:
        link.show_left_out(run.id)
    corpora.notice(corpus)
    if job is not None:
        for line in job.warnings:
            say.warning(line)
    if run is None:
        ask.hello(corpus)
    elif job is not None and under_way:
        results.follow(job)
    elif run.status == "running":
        results.watch(run.id)
    else:
        results.draw(run)
