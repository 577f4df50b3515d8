"""Parameter values tried on a stored run, put into the inputs of the next run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from core.domain.types import Run
from core.routes.declare import Route
from ui.app import link, outcome, say, state
from ui.app.outcome import Outcome
from ui.app.routes import also, differing

INPUTS = (
    state.QUESTION,
    state.CORPUS,
    state.TURNS,
    state.SAID,
    state.ROUTES,
    state.PARAMETERS,
    state.ANSWERS,
    state.ANSWERED,
    state.ANSWER_BY,
    state.ANSWER_ORDER,
    state.SESSION,
    state.EVIDENCE,
)


def offer(run: Run, route: Route, parameters: Mapping[str, Any] | None, lacking: str) -> None:
    """Draw a button that uses `parameters` of `route` in the next run, with Undo.

    `parameters` are {} if nothing was changed, and None if they cannot be used; `lacking` is then the
    reason.
    """
    values = dict(parameters or {})
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        key, work = "keep_parameters", partial(_keep, run, route, values)
        note = "Sets these parameters for the next run, with the question and routes of this run"
        outcome.button("Use in next run", key, work, key, disabled=not parameters, help=note)
        if told := lacking if parameters is None else _text(values):
            say.caption(told)
    outcome.draw("keep_parameters", "undo_parameters")


def _keep(run: Run, route: Route, values: dict[str, Any]) -> Outcome:
    """Restore the request of `run` with changed values of `route`."""
    before = inputs()
    link.restore(run)
    st.session_state[link.ADOPTED] = (run.id, None, None)  # the way to Compare must not restore it again
    return _set(before, route, values, run.corpus)


def use(place: str, route: Route, values: Mapping[str, Any], corpus: str) -> None:
    """Make `values` the route's parameters of the next run over a corpus; `place` shows it, with Undo."""
    outcome.act(place, lambda: _set(inputs(), route, values, corpus))


def _set(before: Mapping[str, Any], route: Route, values: Mapping[str, Any], corpus: str) -> Outcome:
    now = st.session_state
    given = now.get(state.PARAMETERS, {})
    now[state.CORPUS] = corpus
    changed = differing(route, {**given.get(route.name, {}), **values})
    now[state.PARAMETERS] = {**given, route.name: changed}
    also(route.name)
    state.renew()
    way = "Go to Compare and press Ctrl+Enter (⌘+Enter) to run it"
    to = {"run": run} if (run := now.get(state.RUN)) else dict[str, str]()
    told = f"Set for the next run: {route.title} with {_text(values)}."
    return Outcome(told, partial(put_back, before), ("compare.py", way, to))


def inputs() -> dict[str, Any]:
    """Return the current inputs."""
    return {name: st.session_state[name] for name in INPUTS if name in st.session_state}


def put_back(before: Mapping[str, Any]) -> None:
    """Set the inputs to what `inputs` returned."""
    for name in INPUTS:
        st.session_state.pop(name, None)
    st.session_state.update(before)
    state.renew()


def _text(values: Mapping[str, Any]) -> str:
    spoken = {name: f"{one:g}" if isinstance(one, float) else one for name, one in values.items()}
    return ", ".join(f"{name} = {one}" for name, one in spoken.items())
