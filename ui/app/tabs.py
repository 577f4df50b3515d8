"""Several views of which one is drawn: the open one, and the address says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.app import address, say


def tabs(
    views: Mapping[str, Callable[[], None]], key: str, behind: Mapping[str, Callable[[], None]] | None = None
) -> None:
    """Draw the selected one of `views` (label to drawing function); its error is shown in its place.

    The first is selected by default, without a mention in the address; `?tab=` selects another. `behind`
    draws the view that was left last, so that the browser keeps its elements until somebody returns.
    """
    first, left, kept = next(iter(views)), f"{key}_left", behind or {}
    if key not in st.session_state:  # the page is new in the browser, which has nothing to keep
        st.session_state.pop(left, None)
    address.take("tab", key, address.one_of(list(views)))
    if st.session_state.get(key) not in views:
        st.session_state[key] = first
    note: Any = {"on_change": st.session_state.__setitem__, "args": (left, st.session_state[key])}
    for (name, draw), tab in zip(views.items(), st.tabs(list(views), key=key, **note), strict=True):
        if tab.open:
            address.keep("tab", None if name == first else name)
        elif name not in kept or name != st.session_state.get(left):
            continue
        with tab, say.errors():
            (draw if tab.open else kept[name])()
