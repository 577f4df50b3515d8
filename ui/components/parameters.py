"""Widgets for a route's parameters, drawn from their declaration."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.routes.declare import Parameter, Route
from ui.app import state
from ui.app.markup import md

SLIDER_VALUES = 200  # a range with more whole numbers than this gets a number field, not a slider


def draw(route: Route, given: dict[str, Any]) -> dict[str, Any]:
    """Draw the route's parameters and return the values that differ from the defaults."""
    changed: dict[str, Any] = {}
    for parameter in route.parameters:
        key = f"parameter:{route.name}:{parameter.name}:{st.session_state.get(state.VERSION, 0)}"
        value = widget(parameter, given.get(parameter.name, parameter.default), key)
        if value is not None and value != parameter.default:
            changed[parameter.name] = value
    return changed


def widget(parameter: Parameter, value: Any, key: str) -> Any:
    """Draw one parameter showing `value` and return the chosen value, or None if a field was emptied."""
    label, note = md(parameter.name.replace("_", " ")), md(parameter.help)
    if parameter.choices:
        return st.selectbox(label, parameter.choices, parameter.choices.index(value), key=key, help=note)
    if parameter.type is bool:
        return st.toggle(label, value, key=key, help=note)
    if parameter.type is str:
        return st.text_input(label, value, key=key, help=note)
    low, high = parameter.low, parameter.high
    if parameter.type is int:
        whole = (None if low is None else int(low), None if high is None else int(high))
        if whole[0] is not None and whole[1] is not None and whole[1] - whole[0] <= SLIDER_VALUES:
            return st.slider(label, whole[0], whole[1], int(value), key=key, help=note)
        return st.number_input(label, whole[0], whole[1], int(value), step=1, key=key, help=note)
    if low is not None and high is not None:
        return st.slider(label, float(low), float(high), float(value), (high - low) / 100, key=key, help=note)
    return st.number_input(label, low, high, float(value), key=key, help=note)
