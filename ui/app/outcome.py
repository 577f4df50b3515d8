"""The result of the last action at a place: a sentence, the next step, and Undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from ui.app import say
from ui.app.markup import md

KEY = "outcome:{}"  # of a place: its last outcome


@dataclass(frozen=True, slots=True)
class Outcome:
    """A sentence on an action, what takes it back, and a link: page, label and parameters."""

    text: str
    undo: Callable[[], Outcome | None] | None = None
    link: tuple[str, str, dict[str, str]] | None = None
    failed: bool = False


def act(place: str, work: Callable[[], Outcome | None]) -> None:
    """Do the work of a button and remember what it did; an error says why it did nothing. A callback."""
    try:
        st.session_state[KEY.format(place)] = work()
    except RouteScopeError as error:
        st.session_state[KEY.format(place)] = Outcome(f"Not done: {error}", failed=True)


def button(label: str, place: str, work: Callable[[], Outcome | None], key: str, **given: Any) -> None:
    """Draw a button that does `work`, whose outcome is shown at `place`."""
    st.button(label, key=key, on_click=act, args=(place, work), **given)


def draw(place: str, key: str = "", shortcut: str | None = None) -> None:
    """Draw the last outcome at a place with its Undo, whose key is `key` or "PLACE_undo"."""
    last: Outcome | None = st.session_state.get(KEY.format(place))
    if last is None:
        return
    if last.failed:
        say.error(last.text)
        return
    key = key or f"{place}_undo"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{key}_row"):
        say.caption(last.text, width="content")
        if last.undo is not None:
            args = (place, last.undo)
            st.button("Undo", key=key, type="tertiary", shortcut=shortcut, on_click=act, args=args)
        if last.link is not None:
            page, label, parameters = last.link
            st.page_link(page, label=md(label), query_params=parameters)
