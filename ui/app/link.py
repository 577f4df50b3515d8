"""Links to a run or a question, put into the inputs."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.types import Query, Run
from core.engine.request import again
from core.routes.registry import routes
from ui.app import state
from ui.app.markup import md
from ui.app.routes import differing

ADOPTED = "adopted"  # the link whose content was last put into the inputs
LEFT_OUT = "left_out"  # (run, what of it could not be put into the inputs)


def adopt() -> None:
    """Put the run (?run=) or question (?q= with &corpus=) of the address into the inputs, once an address."""
    params = st.query_params
    asked = (params.get("run"), params.get("q"), params.get("corpus"))
    if not any(asked) or st.session_state.get(ADOPTED) == asked:
        return
    st.session_state[ADOPTED] = asked
    run_id, question, corpus = asked
    if run_id:
        st.session_state[state.RUN] = run_id
        try:
            run, _ = state.find(run_id)
        except RouteScopeError:
            return  # Compare says what is wrong, where the result would be
        restore(run)
        corpus = run.corpus
    elif question:
        st.session_state[state.RUN] = None
        state.fill_in(Query(question))
    if corpus:
        st.session_state[state.CORPUS] = corpus


def show(run_id: str) -> None:
    """Make Compare show a run, also in the address; keep the inputs and what of the view fits any run."""
    st.session_state[state.RUN] = run_id
    st.session_state[ADOPTED] = (run_id, None, None)
    kept = {name: value for name, value in st.query_params.to_dict().items() if name not in ("q", "corpus")}
    st.query_params.from_dict({**kept, "run": run_id})


def at_corpus(name: str) -> None:
    """Put the chosen corpus into the address without treating it as a new link."""
    st.query_params["corpus"] = name
    params = st.query_params
    st.session_state[ADOPTED] = (params.get("run"), params.get("q"), name)


def restore(run: Run) -> None:
    """Put a run's request into the inputs, so that Run repeats it; record what is not available here."""
    state.fill_in(run.query)
    request, gone = again(run, routes())
    if request.routes:
        st.session_state[state.ROUTES] = list(request.routes)
    st.session_state[state.PARAMETERS] = {
        name: differing(routes()[name], kept) for name, kept in request.parameters.items()
    }
    st.session_state[state.ANSWERS] = request.answers
    st.session_state[state.ANSWERED] = list(request.answered) if request.answers == "selected" else []
    st.session_state[state.ANSWER_BY] = request.style.by
    st.session_state[state.ANSWER_ORDER] = request.style.order
    state.set_filters("\n".join(map(str, request.where)))
    session = run.settings.get("session")
    st.session_state[state.SESSION] = session if isinstance(session, str) else ""
    st.session_state[LEFT_OUT] = (run.id, gone)


def show_left_out(run_id: str) -> None:
    """Draw what of the run could not be put into the inputs."""
    of_run, gone = st.session_state.get(LEFT_OUT, (None, []))
    if of_run == run_id and gone:
        st.caption(md(f"Not available on this server, so left out of the inputs: {', '.join(gone)}"))
