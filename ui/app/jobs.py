"""Background jobs: progress and Stop in the sidebar, and an announcement when one of yours has ended."""

from __future__ import annotations

import streamlit as st

from core.corpus import catalogue
from core.domain import people
from core.domain.background_job import BackgroundJob, jobs
from core.domain.format import milliseconds
from core.evaluation import first_start
from ui.app import redraw, state
from ui.app.markup import cut, md

POLL_S = 1.0  # seconds between looks, while something is under way
LISTED = "jobs_listed"  # those that were listed last by id, to see which have ended
ENDED = "jobs_ended"  # those that have ended since and are announced
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


# By kind: what to announce, then the page to go on at, the link's label and the parameter that names the job.
NEXT = {
    "build": ("Corpus {} is indexed.", "compare.py", "Ask it a question", "corpus"),
    "evaluation": ("Evaluation {} is finished.", "evaluate.py", "Open it", "evaluation"),
}


def draw() -> None:
    """Draw the running jobs, refreshed every second while there are any."""
    if jobs.under_way(state.engine().settings.home):
        follow()
    else:
        _listed([])


def announce() -> None:
    """Draw which of this person's corpora and evaluations are done since, each with the way to go on."""
    for job in st.session_state.get(ENDED, []):
        told, page, label, parameter = NEXT[job.kind]
        with st.container(horizontal=True, vertical_alignment="center", key=f"ended_{job.id}"):
            if job.error:
                st.error(md(f"{job.kind.capitalize()} {job.title} failed: {job.error}"), width="stretch")
            else:
                st.success(md(told.format(job.title)), width="stretch")
                st.page_link(page, label=label, query_params={parameter: job.title})
            dismiss = st.session_state[ENDED].remove
            st.button("Dismiss", key=f"dismiss:{job.id}", type="tertiary", on_click=dismiss, args=(job,))


def _mine(job: BackgroundJob) -> bool:
    """Return whether this browser session or this account began a job."""
    me = people.current().account
    return job.owner == state.session_id() or bool(me and job.person.account == me)


def _listed(found: list[BackgroundJob]) -> bool:
    """Record the running jobs and return whether one has ended; those to announce are kept."""
    before: dict[str, BackgroundJob] = st.session_state.get(LISTED, {})
    st.session_state[LISTED] = {job.id: job for job in found}
    gone = [job for id, job in before.items() if id not in st.session_state[LISTED]]
    known = {item.name for item in catalogue.known(state.engine().settings)} if gone else set()
    st.session_state.setdefault(ENDED, []).extend(
        job
        for job in gone
        if job.kind in NEXT
        and job.done
        and not job.cancelled
        and _mine(job)
        and (job.kind != "build" or job.title in known)
    )
    return bool(gone)


@st.fragment(run_every=POLL_S)
def follow() -> None:
    """Draw each job with its progress and Stop, and redraw the page when one has ended.

    Other people's private jobs appear only as a count.
    """
    found = [job for job in jobs.under_way(state.engine().settings.home) if job.listed]
    mine = [job for job in found if not job.private or _mine(job)]
    for job in mine:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(job.share, text=md(describe_job(job)))
            st.button("Stop", key=f"stop:{job.id}", on_click=job.cancel, width="content")
    if others := len(found) - len(mine):
        st.caption(f"{others} {'question' if others == 1 else 'questions'} from other sessions")
    if _listed(found):
        redraw.page()


def describe_job(job: BackgroundJob) -> str:
    """Describe a job: its name, its progress, and the time left or taken so far."""
    title = cut(job.title, TITLE_CHARACTERS)
    name = f"{KINDS.get(job.kind, '')} {f'“{title}”' if job.kind == 'question' else title}".strip()
    at = job.stage or (f"{job.finished} of {job.total}" if job.total else "")
    time = f"about {milliseconds(1000 * job.left)} left" if job.left is not None else f"{job.seconds:.0f} s"
    return f"{name}: {at}, {time}" if at else f"{name}: {time}"


def preparations() -> None:
    """Draw a line for each preparation that is running, failed or stopped, with a button to continue it."""
    engine = state.engine()
    for job in first_start.known(engine.settings.home):
        if not job.done:
            st.caption(md(f"{job.title}: {job.part.meanwhile}"))
        elif job.error is not None:
            st.warning(md(f"{job.title} failed: {job.error}"))
        elif job.cancelled:
            st.caption(md(f"{job.title}: stopped. {job.part.meanwhile}"))
        if job.done and not job.complete:
            st.button(
                "Go on" if job.error is None else "Try again",
                key=f"first_start:{job.part.name}",
                on_click=first_start.again,
                args=(engine, job),
            )
