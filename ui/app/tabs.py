"""Several views of which one is drawn: the open one, and the address says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from core.domain.errors import RouteScopeError
from ui.app import address
from ui.app.markup import md


def tabs(
    views: Mapping[str, Callable[[], None]], key: str, behind: Mapping[str, Callable[[], None]] | None = None
) -> None:
    """Draw the open view of `views` (label -> what draws it); an error is shown in its place.

    The first one is open, and not in the address, until another is chosen or asked for by `?tab=`. `behind`
    draws a view that is not open: what it had shown, so that the browser has not to make it anew.
    """
    first = next(iter(views))
    address.take("tab", key, address.one_of(list(views)))
    if st.session_state.get(key) not in views:
        st.session_state[key] = first
    drawn = st.tabs(list(views), on_change="rerun", key=key)
    for (name, draw), tab in zip(views.items(), drawn, strict=True):
        if tab.open:
            address.keep("tab", None if name == first else name)
            with tab:
                try:
                    draw()
                except RouteScopeError as error:
                    st.error(md(str(error)))
        elif behind and name in behind:
            with tab:
                behind[name]()
