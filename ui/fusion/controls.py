"""The sliders of a fusion: one a parameter, each in the address, all reset at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.analysis.what_if.parameters import Control
from ui.app import address
from ui.app.markup import cut, md

MARKS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 750, 1000)
NAMES = ("k", "alpha", "norm", "lam", "pool", *(f"weights.{n}" for n in range(64)))
ACROSS = 4  # sliders in a row


def controls(wanted: Sequence[Control], scope: str) -> dict[str, Any]:
    """Draw them; what is changed, by parameter. `scope` separates one step's values from another's."""
    changes: dict[str, Any] = {}
    for name in NAMES:
        if all(control.name != name for control in wanted):
            address.keep(name, None)  # left by another step
    for at in range(0, len(wanted), ACROSS):
        for column, control in zip(st.columns(ACROSS), wanted[at : at + ACROSS], strict=False):
            with column:
                changes |= control.changes(_draw(control, f"{scope}:{control.name}"))
    return changes


def reset(wanted: Sequence[Control], scope: str) -> None:
    """Reset every parameter to its value in the run."""
    for control in wanted:
        st.session_state[f"{scope}:{control.name}"] = control.value


def _draw(control: Control, key: str) -> Any:
    address.take(control.name, key, lambda text: read(control, text))
    value = st.session_state.setdefault(key, control.value)
    chosen: Any
    label, low, high = md(cut(control.label, 60)), control.low or 0, control.high or 1
    given: Any = {"key": key, "help": md(control.help) or None, "persist_state": "session"}
    if control.choices:
        chosen = st.selectbox(label, control.choices, **given)
    elif control.whole and high > 200:
        options = {*(mark for mark in MARKS if low <= mark <= high), control.value, value}
        chosen = st.select_slider(label, sorted(options), **given)
    elif control.whole and low == high:
        return control.value
    elif control.whole:
        chosen = st.slider(label, int(low), int(high), **given)
    else:
        st.session_state[key] = float(value)
        chosen = st.slider(label, float(low), float(high), step=0.01 if high <= 1 else 0.1, **given)
    address.keep(control.name, None if chosen == control.value else str(chosen))
    return chosen


def read(control: Control, text: str) -> Any:
    """Return a parameter read from the address. Raises ValueError for an invalid value."""
    if control.choices:
        if text not in control.choices:
            raise ValueError(text)
        return text
    value = int(text) if control.whole else float(text)
    if not math.isfinite(value) or not (control.low or 0) <= value <= (control.high or 0):
        raise ValueError(text)
    return value
