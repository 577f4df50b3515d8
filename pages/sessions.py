"""Sessions: every run ever made, reopened exactly as it was, compared, and run again."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from ui.app import opened, say, state
from ui.sessions import compare, replay
from ui.sessions import pair as session_pair
from ui.sessions.actions import actions, export_found, undo
from ui.sessions.import_bundles import bring_in
from ui.sessions.run_list import listing


def page() -> None:
    """Draw the list of runs, or the comparison or repetition named in the address."""
    pair, again = session_pair.pair(), session_pair.chosen()
    if pair is not None:
        compare.draw(*pair)
    elif again is not None:
        _again(again)
    else:
        _list()


def _list() -> None:
    store = state.engine().store
    if store is None:
        st.info("Runs are not stored here, so there is no list.")
        return
    undo(store)
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


def _again(run_id: str) -> None:
    try:
        run, _ = state.find(run_id)
    except RouteScopeError as error:
        say.error(error)
        st.button("All runs", key="back", on_click=session_pair.back)
        return
    replay.form(run)


with say.errors():
    page()
opened.link()
