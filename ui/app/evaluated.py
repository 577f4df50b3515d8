"""The evaluation shown by the pages of the section Decide, kept in the address."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.domain.errors import BadInput, RouteScopeError
from core.evaluation import experiment_store
from core.evaluation.experiment_store import Evaluation
from core.evaluation.first_start import EXAMPLE
from core.evaluation.questions import provenance
from ui.app import address, state
from ui.app.choice import choice
from ui.app.markup import md

CHOSEN = "evaluation"
OTHERS = "evaluation_others"
HERE = "evaluation_corpus"  # the corpus of the sidebar when an evaluation was chosen last


def chosen(*, label: str = "Evaluation", noted: bool = True) -> Evaluation | None:
    """Draw the choice of a saved evaluation and open it; those of other corpora are listed on request.

    Returns None, with the next step on the page, if there is none. With `noted` the evaluation's `note` is
    below the choice.
    """
    settings = state.engine().settings
    names = experiment_store.names(settings)
    if not names:
        st.subheader("No evaluations yet", anchor=False)
        st.caption(
            "Evaluate routes on labelled questions first. RouteScope stores the results of each question."
        )
        st.page_link("evaluate.py", label="Go to Evaluate")
        return None
    folders = {one: experiment_store.place(settings, one) for one in names}
    corpora = {one: _corpus(str(at), experiment_store.stamp(at)) for one, at in folders.items()}
    here = st.session_state.get(state.CORPUS)
    own = [one for one in names if here is None or corpora[one] == here]
    others = [one for one in names if one not in own]
    if st.session_state.get(HERE, here) != here and not address.is_new(CHOSEN):
        st.session_state.pop(CHOSEN, None)
        address.keep(CHOSEN, None)
    st.session_state[HERE] = here
    if not own:
        st.subheader(md(f"No evaluation of {here} yet"), anchor=False)
        st.caption("Evaluate routes on labelled questions of this corpus first.")
        st.page_link("evaluate.py", label="Go to Evaluate")
    if others:
        asked = st.query_params.get(CHOSEN) in others or st.session_state.get(CHOSEN) in others
        more = st.checkbox("Also of other corpora", key=OTHERS, value=asked, persist_state="session")
        names = [*own, *others] if more or asked else own
    if not names:
        return None
    name = choice(
        CHOSEN,
        CHOSEN,
        label,
        names,
        always=True,
        width=420,
        format_func=lambda one: one if corpora[one] == here else f"{one} · corpus {corpora[one]}",
    )
    try:
        found = reopened(name)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return None
    if noted:
        note(found)
    return found


def others_of_corpus(evaluation: Evaluation) -> list[str]:
    """Return the names of the corpus' other evaluations, most recently changed first."""
    settings = state.engine().settings
    folders = {one: experiment_store.place(settings, one) for one in experiment_store.names(settings)}
    corpus = evaluation.spec.get("corpus")
    return [
        one
        for one, at in folders.items()
        if one != evaluation.name and _corpus(str(at), experiment_store.stamp(at)) == corpus
    ]


@st.cache_data(max_entries=256, show_spinner=False)
def _corpus(folder: str, stamp: tuple[float, ...]) -> str:  # noqa: ARG001 - part of the cache key
    """Return the corpus of an evaluation, or "" if it cannot be read."""
    try:
        return str(experiment_store.opened(Path(folder)).spec.get("corpus", ""))
    except RouteScopeError:
        return ""


def note(evaluation: Evaluation) -> None:
    """Draw what to know before any figure: that a model wrote the questions, or that this is the example."""
    if told := provenance.note(evaluation.labelled.questions):
        st.info(md(told))
    if evaluation.name == EXAMPLE:
        st.caption("An example: made by the first start from the built-in documents. Delete it at any time.")


def reopened(name: str) -> Evaluation:
    """Return an evaluation by name, read again if its folder has changed. Raises BadInput if unreadable."""
    folder = experiment_store.place(state.engine().settings, name)
    return _opened(str(folder), experiment_store.stamp(folder))


@st.cache_resource(max_entries=4, show_spinner="Opening the evaluation")
def _opened(folder: str, stamp: tuple[float, ...]) -> Evaluation:  # noqa: ARG001 - part of the cache key
    return experiment_store.opened(Path(folder))


def to_sessions(evaluation: Evaluation, question: str, run: str = "") -> str:
    """Save a question's run, or another run of it, with the other runs, and return its id.

    Raises BadInput if the evaluation saved no run of the question.
    """
    store = state.engine().store
    if store is None:
        raise BadInput("runs are not stored here, so none can be opened")
    id = run or evaluation.run_id(question)
    try:
        store.load(id)
    except BadInput:
        store.save(evaluation.stored(id, question))
        store.flush()
    return id
