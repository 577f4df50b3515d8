"""Sessions: every run ever made, reopened exactly as it was, compared, and replayed."""

from __future__ import annotations

import streamlit as st

from ui.app import opened, outcome, say, state
from ui.sessions import compare
from ui.sessions.actions import PLACE, actions, bring_in, export_found
from ui.sessions.run_list import listing


def page() -> None:
    """Draw the list of runs, or the comparison named in the address."""
    asked = st.query_params
    if asked.get("a") and asked.get("b"):
        compare.draw(asked["a"], asked["b"])
    else:
        _list()


def _list() -> None:
    store = state.store()
    outcome.draw(PLACE, "undo")
    if store.count() == 0:
        st.subheader("No runs yet", anchor=False)
        st.caption("RouteScope stores every run here with all results. You can reopen a run without a model.")
        st.page_link("compare.py", label="Go to Compare")
    else:
        picked, search, only = listing(store)
        if picked:
            actions(store, picked)
        else:
            st.caption(
                "Select a run at the left of its row to open, tag, rerun, export or delete it. Select two to "
                "compare them."
            )
            export_found(store, search, only)
    bring_in(store)


with say.errors():
    page()
opened.link()
