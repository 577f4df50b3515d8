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
    """Draw the selected one of `views` (label to drawing function); its error is shown in its place.

    The first is selected by default, without a mention in the address; `?tab=` selects another. `behind`
    draws what an unselected view showed, so that the browser keeps its elements.
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
