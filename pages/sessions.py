"""Sessions: every run ever made, reopened exactly as it was."""

from __future__ import annotations

import streamlit as st

from core.corpus import catalogue
from core.errors import RouteScopeError
from ui import state
from ui.markup import md
from ui.session_actions import actions, bring_in, undo
from ui.session_list import listing


def page() -> None:
    """The list, and what can be done with the rows that are picked."""
    store = state.engine().store
    if store is None:
        st.info("Runs are not stored here, so there is nothing to list.")
        return
    undo(store)
    if store.count() == 0:
        st.subheader("Nothing has been asked yet", anchor=False)
        st.caption("Every run is kept here with all it found, and opens again without any model. Ask first:")
        st.page_link("compare.py", label="Go to Compare")
    else:
        picked = listing(
            store, [item.name for item in catalogue.known(state.engine().settings) if item.askable]
        )
        if picked:
            actions(store, picked)
        else:
            st.caption("Pick a run at the left of its row to open, tag, export or delete it.")
    bring_in(store)


try:
    page()
except RouteScopeError as error:
    st.error(md(str(error)))
