"""The saved evaluations: their list, those that are running, and the actions on the open one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.evaluation import background, experiment_store
from core.evaluation.background import Entry
from core.evaluation.experiment_store import Evaluation
from ui.app import account, evaluated, outcome, redraw, say, state, workers
from ui.app.evaluated import CHOSEN
from ui.app.markup import md
from ui.app.outcome import Outcome
from ui.app.progress import progress as bar
from ui.app.routes import title
from ui.components import tables

BEGUN = "evaluate_begun"  # an evaluation that was begun here, to be chosen when it is there
FOLLOWED = "evaluate_followed"  # the names of those that were running when the page was drawn last
STATES = {"under way": "running"}  # what people read for the state that is stored
PLACE = "evaluate"  # of the outcome of resuming and deleting one
RESUME_BY = "ev_workers_resume"  # the choice of who goes on with one
POLL_S = 1.0  # seconds between looks at those that are running


def entries() -> list[Entry]:
    """Return all saved evaluations, most recently changed first."""
    engine = state.engine()
    return [background.now(engine, one) for one in evaluated.entries()]


def choose_begun(names: Sequence[str]) -> None:
    """Open what was begun last, once it is there; before the choice is drawn."""
    begun = st.session_state.get(BEGUN)
    if begun in names:
        st.session_state[CHOSEN] = st.session_state.pop(BEGUN)
    elif begun and (one := background.under_way(state.engine(), begun)) is not None and one.error:
        say.error(f"Evaluation {begun} ended before its first question: {one.error}")
        del st.session_state[BEGUN]


def progress() -> None:
    """Draw the progress of running evaluations, each with its Stop."""
    active = background.active(state.engine())
    st.session_state[FOLLOWED] = {one.name for one in active}
    if len(active) > 1:
        st.warning(f"{len(active)} evaluations are running at once, which distorts their latencies.")
    if active:
        _follow()


@st.fragment(run_every=POLL_S)
def _follow() -> None:
    active = background.active(state.engine())
    if st.session_state.get(FOLLOWED, set()) - {one.name for one in active}:
        redraw.page()
    for one in active:
        stopping = " · stopping" if one.cancelled else ""
        text = f"{one.name}: {one.finished} of {one.total} questions done{stopping}"
        bar(one, text, key=f"evaluate_stop:{one.name}")
    st.caption("The evaluation continues when you close this tab. Results are saved after each question.")


def table(found: Sequence[Entry]) -> None:
    """Draw the saved evaluations as a table."""
    why = any(one.why for one in found)
    rows = [
        {
            "Name": one.name,
            "Corpus": one.corpus,
            "Questions": one.split,
            "Routes": one.routes,
            "Done": f"{one.done} of {one.total}",
            "State": STATES.get(one.state, one.state),
            "Failed results": one.failed,
            "Changed (UTC)": one.changed[:16].replace("T", " "),
            **({"Error": one.why} if why else {}),
        }
        for one in found
    ]
    tables.table(rows, "evaluate_kept", "Saved evaluations")


def ended(one: Entry) -> None:
    """Draw the error that ended an evaluation, and how to go on: resume it, or retry failed questions."""
    if one.why and one.state in ("failed", "finished"):
        say.error(f"The last attempt failed: {one.why}")
        st.caption("If the corpus, its settings or the model have changed, start a new evaluation instead.")
    resumes, retries = one.state in ("stopped", "failed"), one.failed and one.state != "under way"
    if not (resumes or retries):
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        workers.choose(RESUME_BY)
        if resumes:
            label, work = f"Resume ({one.done} of {one.total} done)", partial(_resume, one.name)
            outcome.button(label, PLACE, work, "evaluate_resume", type="primary")
        if retries:
            note, work = (
                "Reruns the questions on which a route failed",
                partial(_resume, one.name, retry=True),
            )
            outcome.button(f"Retry failed ({one.failed})", PLACE, work, "evaluate_retry", help=note)


def about(one: Entry, evaluation: Evaluation | None) -> None:
    """Draw what was measured, and the button that deletes it."""
    if evaluation is not None:
        say.caption(_facts(one, evaluation))
    contents = f"the results of {one.done} questions: rankings, answers, figures and runs"
    what = "the contents of its damaged folder" if one.state == "damaged" else contents
    minutes = state.engine().settings.delete_undo_minutes
    undo = f"It can be undone for {minutes:g} minutes." if minutes else "It cannot be undone."
    with st.popover("Delete", key="evaluate_delete", disabled=one.state == "under way", type="tertiary"):
        st.markdown(md(f"This deletes {what}. {undo} Runs that you opened in Why stay in Sessions."))
        outcome.button(f"Delete {md(one.name)}", PLACE, partial(_remove, one.name), "evaluate_remove")


def _facts(one: Entry, evaluation: Evaluation) -> str:
    spec, figures = evaluation.spec, evaluation.figures
    timing = {"shared": "routes run together", "isolated": "routes run one after the other"}
    parameters = ", ".join(
        f"{title(route)} {key} = {value}"
        for route, given in spec["parameters"].items()
        for key, value in given.items()
    )
    by = account.by(state.store(), "evaluation begun", one.name)
    sample = figures.get("sample") or {}
    parts = [
        f"Corpus {one.corpus}",
        f"label set “{spec['labels']}”" if spec.get("labels") else f"split {one.split}",
        f"mode {spec['mode']}" if spec.get("mode") else "",
        f"a sample of {sample['of']}" if sample else "",
        f"{one.done} of {one.total} questions done · {one.routes} routes",
        timing.get(str(figures.get("timing")), ""),
        "with answers" if spec.get("answers") else "",
        f"parameters: {parameters}" if parameters else "",
        f"{STATES.get(one.state, one.state)} · {one.changed[:16].replace('T', ' ')} UTC",
        f"begun{by}" if by else "",
    ]
    return " · ".join(filter(None, parts))


def _resume(name: str, *, retry: bool = False) -> None:
    background.resume(state.engine(), name, retry=retry, workers=workers.chosen(RESUME_BY))


def _remove(name: str) -> Outcome:
    settings = state.engine().settings
    experiment_store.remove(settings, name)
    return Outcome(f"Evaluation “{name}” is deleted.", partial(experiment_store.restore, settings, name))
