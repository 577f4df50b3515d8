"""Widgets for a route's knobs, drawn from their declaration."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.routes.declare import KnobSpec, Route
from ui.app import state
from ui.app.markup import md

FINE = 200  # a range with more whole numbers than this gets a number field, not a slider


def draw(route: Route, given: dict[str, Any]) -> dict[str, Any]:
    """The route's knobs as widgets; returns the values that differ from the defaults."""
    changed: dict[str, Any] = {}
    for knob in route.knobs:
        value = widget(knob, given.get(knob.name, knob.default), state.knob_key(route.name, knob.name))
        if value is not None and value != knob.default:
            changed[knob.name] = value
    return changed


def widget(knob: KnobSpec, value: Any, key: str) -> Any:
    """One knob as a widget that shows `value`; returns what is chosen, None where a field is emptied."""
    label, note = md(knob.name.replace("_", " ")), md(knob.help)
    if knob.choices:
        return st.selectbox(label, knob.choices, knob.choices.index(value), key=key, help=note)
    if knob.type is bool:
        return st.toggle(label, value, key=key, help=note)
    if knob.type is str:
        return st.text_input(label, value, key=key, help=note)
    low, high = knob.low, knob.high
    if knob.type is int:
        whole = (None if low is None else int(low), None if high is None else int(high))
        if whole[0] is not None and whole[1] is not None and whole[1] - whole[0] <= FINE:
            return st.slider(label, whole[0], whole[1], int(value), key=key, help=note)
        return st.number_input(label, whole[0], whole[1], int(value), step=1, key=key, help=note)
    if low is not None and high is not None:
        return st.slider(label, float(low), float(high), float(value), (high - low) / 100, key=key, help=note)
    return st.number_input(label, low, high, float(value), key=key, help=note)
