"""Parts that the views of the Latency page share: sentences, a choice that is in the address, a meter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from markupsafe import Markup

from ui.app import address
from ui.app.markup import EMPTY, tag

STEP_OPTIONS = (
    "show",
    {"all": "All", "retrieval": "Retrieval only"},
    "Leaves out the language model's steps, which dwarf the searches",
)


def sentences(said: Sequence[str]) -> Markup:
    """Return the main findings, one line each."""
    lines = [tag("li", one, dir="auto") for one in said if one]
    return tag("div", tag("ul", *lines), css="rs rs-latency-words") if lines else EMPTY


def switch(label: str, name: str, options: Mapping[str, str], help: str | None = None) -> str:
    """Draw a choice and return its value, kept in the address under `name` unless it is the first.

    `options` maps values to labels.
    """
    key = f"latency_{name}"
    usual = next(iter(options))
    address.take(name, key, address.one_of(list(options)))
    if st.session_state.get(key) not in options:
        st.session_state[key] = usual
    chosen = st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        required=True,
        key=key,
        help=help,
        persist_state="session",
    )
    chosen = chosen or usual
    address.keep(name, None if chosen == usual else chosen)
    return chosen


def meter(low: float, high: float, colour: str = "", css: str = "") -> Markup:
    """Return a bar from `low` to `high`, as shares of its width."""
    left, width = 100 * min(1.0, max(0.0, low)), 100 * min(1.0, max(0.0, high - low))
    style = f"left:{left:.2f}%;width:{width:.2f}%" + (f";background:{colour}" if colour else "")
    return tag("div", tag("i", style=style, css=css), css="rs-latency-bar")
