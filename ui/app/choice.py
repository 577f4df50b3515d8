"""A choice that the address keeps: one of some options, or a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, TypeVar

import streamlit as st

from ui.app import address

T = TypeVar("T")


def choice(
    name: str,
    key: str,
    label: str,
    options: Sequence[T] | Mapping[T, str],
    *,
    usual: T | None = None,
    segmented: bool = False,
    always: bool = False,
    **widget: Any,
) -> T:
    """Draw a choice of one of `options`, kept in the address as `name` and in the session under `key`.

    `options` may map each option to its label.
    `usual` (by default the first option) is chosen first, and again if the choice is no longer an option;
    the address leaves it out unless `always`. `segmented` draws buttons instead of a select box; `widget`
    has further arguments of the widget.
    """
    names = list(options)
    begin = names[0] if usual is None else usual
    address.take(name, key, address.one_of(names))
    if st.session_state.get(key) not in names:
        st.session_state[key] = begin
    labels = {"format_func": options.__getitem__} if isinstance(options, Mapping) else {}
    given: dict[str, Any] = {"key": key, "persist_state": "session", **labels, **widget}
    if segmented:
        chosen = st.segmented_control(label, names, required=True, **given)
    else:
        chosen = st.selectbox(label, names, **given)
    value: T = begin if chosen is None else chosen
    address.keep(name, str(value) if always or value != begin else None)
    return value


def switch(name: str, key: str, label: str, *, usual: bool = False, **widget: Any) -> bool:
    """Draw a checkbox, at first `usual`, kept in the address as `name` ("1" or "0") where it differs."""
    address.take(name, key, {"1": True, "0": False}.__getitem__)
    st.session_state.setdefault(key, usual)
    on = st.checkbox(label, key=key, persist_state="session", **widget)
    address.keep(name, None if on == usual else str(int(on)))
    return on


def number(
    name: str,
    key: str,
    label: str,
    low: float | None,
    high: float | None,
    usual: float | None,
    *,
    form: str = "g",
    **widget: Any,
) -> float | None:
    """Draw a field for a number from `low` to `high`, kept in the address as `name` where it is not `usual`.

    An empty field returns None; the address then has "none".
    """

    def read(given: str) -> float | None:
        value = None if given == "none" else type(widget["step"])(given)
        ends = -inf if low is None else low, inf if high is None else high
        if value is not None and not ends[0] <= value <= ends[1]:
            raise ValueError(f"{name}={given} is out of range")
        return value

    address.take(name, key, read)
    st.session_state.setdefault(key, usual)
    field: Any = {"key": key, "value": None, "persist_state": "session", **widget}
    value: float | None = st.number_input(label, low, high, **field)
    same = value == usual or (value is not None and usual is not None and abs(value - usual) < 1e-9)
    address.keep(name, None if same else "none" if value is None else f"{value:{form}}")
    return value


def slider(
    name: str, key: str, label: str, low: float, high: float, usual: float, *, step: float, **widget: Any
) -> float:
    """Draw a slider from `low` to `high`, kept in the address as `name` unless it stands at `usual`.

    Where it stands nearest to `usual`, that value itself is returned, which may lie between two steps.
    """

    def read(given: str) -> float:
        if not low <= float(given) <= high:
            raise ValueError(f"{name} must be from {low:g} to {high:g}")
        return float(given)

    near = min(high, max(low, round(usual, 3)))
    address.take(name, key, read)
    if st.session_state.get(key) is None:
        st.session_state[key] = near
    given = {"format": "%.3f", "width": 420, "persist_state": "session", **widget}
    value = float(st.slider(label, low, high, step=step, key=key, **given))
    address.keep(name, None if value == near else f"{value:.3f}")
    return usual if value == near else value
