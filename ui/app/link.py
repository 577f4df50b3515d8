"""Links to a run or a question, put into the inputs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.types import Query, Run
from core.engine.request import filters_of, settled, texts
from core.routes.registry import routes
from ui.app import state
from ui.app.answer_style import ANSWERS, BY, ORDERS
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
    named = texts(run.settings.get("routes")) or [result.route for result in run.results]
    here = [name for name in named if name in routes()]
    gone = [f"route {name}" for name in named if name not in routes()]
    if here:
        st.session_state[state.ROUTES] = here
    turned: dict[str, dict[str, Any]] = {}
    for result in run.results:
        if result.route in here:
            kept, unknown = settled(routes()[result.route], result.parameters)
            turned[result.route] = differing(routes()[result.route], kept)
            gone += unknown
    st.session_state[state.PARAMETERS] = turned
    answers = run.settings.get("answers")
    st.session_state[state.ANSWERS] = answers if answers in list(ANSWERS) else "none"
    answered = texts(run.settings.get("answered")) if answers == "selected" else []
    st.session_state[state.ANSWERED] = [name for name in answered if name in here]
    st.session_state[state.ANSWER_BY] = _one_of(run.settings.get("answers by"), BY)
    st.session_state[state.ANSWER_ORDER] = _one_of(run.settings.get("answer order"), ORDERS)
    try:
        where = filters_of(run.settings)
    except RouteScopeError as error:
        where = ()
        gone.append(str(error))
    state.set_filters("\n".join(map(str, where)))
    session = run.settings.get("session")
    st.session_state[state.SESSION] = session if isinstance(session, str) else ""
    st.session_state[LEFT_OUT] = (run.id, gone)


def show_left_out(run_id: str) -> None:
    """Draw what of the run could not be put into the inputs."""
    of_run, gone = st.session_state.get(LEFT_OUT, (None, []))
    if of_run == run_id and gone:
        st.caption(md(f"Not available on this server, so left out of the inputs: {', '.join(gone)}"))


def _one_of(value: object, known: Collection[str]) -> str:
    """Return `value` if it is known, else the first known value; runs of earlier versions may lack it."""
    return value if isinstance(value, str) and value in known else next(iter(known))
