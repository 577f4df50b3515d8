"""Background jobs in the sidebar, with progress and Stop."""

from __future__ import annotations

import streamlit as st

from core.domain import people
from core.domain.background_job import BackgroundJob, jobs
from core.domain.format import milliseconds
from ui.app import redraw, state
from ui.app.markup import cut, md

POLL_S = 1.0  # seconds between looks, while something is under way
LISTED = "jobs_listed"  # those that were listed last, to see which have ended
TITLE_CHARACTERS = 40  # letters of a title: four lines of the sidebar
KINDS = {
    "question": "Question",
    "answer": "Answer for",
    "evaluation": "Evaluation",
    "pool": "Passages for",
    "suggestions": "Suggested grades for",
    "sweep": "Sweep of",
    "fit": "Weights",
    "survey": "Labelled questions:",
    "questions": "Questions for",
    "preparation": "First start:",
}


def draw() -> None:
    """Draw the running jobs, refreshed every second while there are any."""
    if jobs.under_way(state.engine().settings.home):
        follow()
    else:
        st.session_state[LISTED] = set()


@st.fragment(run_every=POLL_S)
def follow() -> None:
    """Draw each job with its progress and Stop, and redraw the page when one has ended.

    Other people's private jobs appear only as a count.
    """
    found = [job for job in jobs.under_way(state.engine().settings.home) if job.listed]
    me = people.current().account
    mine = [
        job
        for job in found
        if not job.private or job.owner == state.session_id() or (me and job.person.account == me)
    ]
    for job in mine:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(job.share, text=md(describe_job(job)))
            st.button("Stop", key=f"stop:{job.id}", on_click=job.cancel, width="content")
    if others := len(found) - len(mine):
        st.caption(f"{others} {'question' if others == 1 else 'questions'} from other sessions")
    ids = {job.id for job in found}
    before = st.session_state.get(LISTED, set())
    st.session_state[LISTED] = ids
    if before - ids:
        redraw.page()


def describe_job(job: BackgroundJob) -> str:
    """Describe a job: its name, its progress, and the time left or taken so far."""
    title = cut(job.title, TITLE_CHARACTERS)
    name = f"{KINDS.get(job.kind, '')} {f'“{title}”' if job.kind == 'question' else title}".strip()
    at = job.stage or (f"{job.finished} of {job.total}" if job.total else "")
    time = f"about {milliseconds(1000 * job.left)} left" if job.left is not None else f"{job.seconds:.0f} s"
    return f"{name}: {at}, {time}" if at else f"{name}: {time}"
