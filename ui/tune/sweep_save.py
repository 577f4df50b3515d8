"""A value of a sweep, used as a parameter of the next run or saved in a preset; both can be undone."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.evaluation.tuning.saving import Setting
from core.evaluation.tuning.sweep import Curve, named, note
from core.evaluation.tuning.sweep_subject import Point
from core.routes.declare import Route
from ui.app import next_run, state
from ui.app.markup import cut, md
from ui.app.routes import also
from ui.components import preset_saving

POINT = "sweep_point"


def draw(curve: Curve, route: Route) -> None:
    """Draw the choice of a value and the two places to save it."""
    about = curve.subject
    st.markdown("##### Use a value")
    points = [one.point for one in curve.tried]
    key = f"{POINT}:{about.route}:{','.join(about.names)}"
    usual = curve.best.point if curve.holds else about.now
    if st.session_state.get(key) not in points:
        st.session_state[key] = usual
    corpus = str(about.evaluation.spec["corpus"])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        point: Point = st.selectbox(
            "Value",
            points,
            key=key,
            width=300,
            persist_state="session",
            format_func=lambda one: cut(named(about, one), 60) + _mark(curve, one),
        )
        values = about.values(point)
        st.button(
            "Use in Compare",
            key="sweep_keep",
            on_click=keep,
            args=(route, values, corpus),
            help="Sets the value as a parameter of the next run on Compare",
        )
    st.caption(md(note(curve, point) + "."))
    _kept(route)
    preset_saving.offer(
        "sweep",
        Setting(about.route, about.values(point)),
        corpus,
        note(curve, point),
        f"{about.evaluation.name} parameters",
    )


def keep(route: Route, values: dict[str, Any], corpus: str) -> None:
    """Make `values` the route's parameters of the next run; the inputs before are remembered for Undo."""
    now = st.session_state
    before = {name: now[name] for name in next_run.INPUTS if name in now}
    default = route.settle({})
    changed = {**now.get(state.PARAMETERS, {}).get(route.name, {}), **values}
    now[state.CORPUS] = corpus
    now[state.PARAMETERS] = {
        **now.get(state.PARAMETERS, {}),
        route.name: {name: value for name, value in changed.items() if value != default[name]},
    }
    also(route.name)
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again
    now[next_run.BEFORE], now[next_run.KEPT] = before, (_mine(route), route.title, dict(values))


def _kept(route: Route) -> None:
    of, title, values = st.session_state.get(next_run.KEPT, (None, "", {}))
    if of != _mine(route):
        return
    parameters = ", ".join(f"{name} = {value}" for name, value in values.items())
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sweep_kept_row"):
        st.success(md(f"Set for the next run: {title} with {parameters}."))
        st.page_link("compare.py", label="Go to Compare, then press Ctrl+Enter (⌘ Enter) to run")
        st.button("Undo", key="sweep_undo_keep", on_click=next_run.undo, type="tertiary")


def _mine(route: Route) -> str:
    return f"sweep:{route.name}"


def _mark(curve: Curve, point: Point) -> str:
    if point == curve.subject.now:
        return " · in use"
    return " · highest" if point == curve.best.point else ""
