"""A run's owner and visibility: private to its maker until shared."""

from __future__ import annotations

import streamlit as st

from core.domain import people
from core.domain.errors import RouteScopeError
from core.store import SessionRow, Store
from ui.app import state
from ui.app.markup import md

FAILED = "sharing_failed"


def words(row: SessionRow) -> str:
    """Describe who sees a run; "" if no account made it."""
    if not row.maker:
        return ""
    mine = row.maker == people.current().account
    if row.private:
        return "Only you see this run." if mine else f"Only {row.maker} sees this run."
    return "You shared this run: everybody here sees it." if mine else f"Shared by {row.maker}."


def draw(run_id: str) -> None:
    """Draw who sees a finished run, with Share or Make private for its maker; nothing without a login."""
    store = state.engine().store
    if store is None or not people.current().account:
        return
    if failed := st.session_state.pop(FAILED, None):
        st.error(md(failed))
    try:
        row = store.session(run_id)
    except RouteScopeError:  # not stored yet, or not at all
        return
    if told := words(row):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sharing"):
            st.caption(md(told), width="content")
            if row.maker == people.current().account and row.status != "running":
                button(store, row, "sharing_button")


def button(store: Store, row: SessionRow, key: str) -> None:
    """Draw a button that shares the run, or makes it private again."""
    label = "Share" if row.private else "Make private"
    st.button(label, key=key, on_click=_change, args=(store, row.id, row.private), type="tertiary")


def _change(store: Store, run_id: str, shared: bool) -> None:
    try:
        store.share(run_id, shared)
    except RouteScopeError as error:
        st.session_state[FAILED] = str(error)
