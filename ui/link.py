"""What an address asks for, put into the inputs: a run to look at and ask again, or a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import BadInput, RouteScopeError
from core.route import Route, routes
from core.types import Query, Run
from ui import state
from ui.ask import ANSWERS, BY, ORDERS
from ui.markup import md

ADOPTED = "adopted"  # the link whose content was last put into the inputs
LEFT_OUT = "left_out"  # (run, what of it could not be put into the inputs)


def adopt() -> None:
    """Put what the address asks for (?run=, or ?q= with &corpus=) into the inputs, once an address."""
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
    """Make Compare show a run, and the address say so; the inputs stay as they are."""
    st.session_state[state.RUN] = run_id
    st.session_state[ADOPTED] = (run_id, None, None)
    st.query_params.from_dict({"run": run_id})


def restore(run: Run) -> None:
    """Put all that was asked into the inputs, so that Run repeats it; noted is what this version lacks."""
    state.fill_in(run.query)
    named = _names(run.settings.get("routes")) or [result.route for result in run.results]
    here = [name for name in named if name in routes()]
    gone = [f"route {name}" for name in named if name not in routes()]
    if here:
        st.session_state[state.ROUTES] = here
    turned: dict[str, dict[str, Any]] = {}
    for result in run.results:
        if result.route in here:
            changed, unknown = _knobs(routes()[result.route], result.knobs)
            turned[result.route] = changed
            gone += unknown
    st.session_state[state.KNOBS] = turned
    answers = run.settings.get("answers")
    st.session_state[state.ANSWERS] = answers if answers in list(ANSWERS) else "none"
    answered = _names(run.settings.get("answered")) if answers == "selected" else []
    st.session_state[state.ANSWERED] = [name for name in answered if name in here]
    st.session_state[state.ANSWER_BY] = _one_of(run.settings.get("answers by"), BY)
    st.session_state[state.ANSWER_ORDER] = _one_of(run.settings.get("answer order"), ORDERS)
    session = run.settings.get("session")
    st.session_state[state.SESSION] = session if isinstance(session, str) else ""
    st.session_state[LEFT_OUT] = (run.id, gone)


def told(run_id: str) -> None:
    """What of the run could not be put into the inputs."""
    of_run, gone = st.session_state.get(LEFT_OUT, (None, []))
    if of_run == run_id and gone:
        st.caption(md(f"Not in this version, so left out above: {', '.join(gone)}"))


def _one_of(value: object, known: Mapping[str, str]) -> str:
    """Settings of a run of an earlier version may lack this."""
    return value if isinstance(value, str) and value in known else next(iter(known))


def _names(value: object) -> list[str]:
    """Settings of an imported run may be anything."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _knobs(route: Route, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What differs from the defaults, and what is unknown or not allowed any more."""
    known = {knob.name: knob for knob in route.knobs}
    changed: dict[str, Any] = {}
    gone = []
    for name, value in given.items():
        try:
            settled = route.settle({name: value})[name]
        except BadInput:
            gone.append(f"knob {route.name}.{name}")
            continue
        if settled != known[name].default:
            changed[name] = settled
    return changed, gone
