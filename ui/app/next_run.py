"""Parameter values tried on a stored run, put into the inputs of the next run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.domain.types import Run
from core.routes.declare import Route
from ui.app import link, opened, state
from ui.app.markup import md
from ui.app.routes import also

BEFORE = "inputs_before"  # the inputs as they were before the last `keep`, for Undo
KEPT = "kept_parameters"  # (run, route, parameters) of the last `keep`
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
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Use in next run",
            key="keep_parameters",
            disabled=not parameters,
            on_click=keep,
            args=(run, route, dict(parameters or {})),
            help="Sets these parameters for the next run, with the question and routes of this run",
        )
        if parameters:
            st.caption(md(", ".join(f"{name} = {_text(value)}" for name, value in parameters.items())))
        elif parameters is None:
            st.caption(md(lacking))
    draw_kept(run.id)


def keep(run: Run, route: Route, parameters: dict[str, Any]) -> None:
    """Restore the request of `run` with changed `parameters` of `route`, keeping earlier inputs for Undo."""
    now = st.session_state
    before = inputs()
    link.restore(run)
    now[state.CORPUS] = run.corpus
    changed = {**now[state.PARAMETERS].get(route.name, {}), **parameters}
    default = {parameter.name: parameter.default for parameter in route.parameters}
    now[state.PARAMETERS] = {
        **now[state.PARAMETERS],
        route.name: {name: value for name, value in changed.items() if value != default[name]},
    }
    also(route.name)
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again
    now[link.ADOPTED] = (run.id, None, None)  # the way to Compare must not restore the run over it
    now[BEFORE], now[KEPT] = before, (run.id, route.title, dict(parameters))


def set_parameters(of: str, route: Route, values: Mapping[str, Any], corpus: str) -> None:
    """Make `values` the route's parameters of the next run over a corpus, keeping earlier inputs for Undo."""
    now, before, default = st.session_state, inputs(), route.settle({})
    changed = {**now.get(state.PARAMETERS, {}).get(route.name, {}), **values}
    now[state.CORPUS] = corpus
    now[state.PARAMETERS] = {
        **now.get(state.PARAMETERS, {}),
        route.name: {name: value for name, value in changed.items() if value != default[name]},
    }
    also(route.name)
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again
    now[BEFORE], now[KEPT] = before, (of, route.title, dict(values))


def undo() -> None:
    """Restore the inputs from before the last `keep`."""
    st.session_state.pop(KEPT, None)
    put_back(st.session_state.pop(BEFORE, {}))


def inputs() -> dict[str, Any]:
    """Return the current inputs."""
    return {name: st.session_state[name] for name in INPUTS if name in st.session_state}


def put_back(before: Mapping[str, Any]) -> None:
    """Set the inputs to what `inputs` returned."""
    now = st.session_state
    for name in INPUTS:
        if name in before:
            now[name] = before[name]
        else:
            now.pop(name, None)
    now[state.VERSION] = now.get(state.VERSION, 0) + 1


def draw_kept(of: str, key: str = "undo_parameters") -> None:
    """Draw what `keep` or `set_parameters` set last, if that was `of`, with the way on and Undo."""
    last, title, parameters = st.session_state.get(KEPT, (None, "", {}))
    if last != of:
        return
    values = ", ".join(f"{name} = {_text(value)}" for name, value in parameters.items())
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="kept"):
        st.success(md(f"Set for the next run: {title} with {values}."))
        label = "Go to Compare and press Ctrl+Enter (⌘+Enter) to run it"
        if st.session_state.get(state.RUN):
            opened.to("compare.py", label)
        else:
            st.page_link("compare.py", label=md(label))
        st.button("Undo", key=key, on_click=undo, type="tertiary")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
