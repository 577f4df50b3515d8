"""A run's owner and visibility: private to its maker until shared."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import streamlit as st

from core.domain import people
from core.domain.errors import RouteScopeError
from core.store import SessionRow, Store
from ui.app import outcome, say, state

PLACE = "sharing"


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
    store, me = state.store(), people.current().account
    if not me:
        return
    outcome.draw(PLACE)
    with suppress(RouteScopeError):  # not stored yet, or not at all
        row = store.session(run_id)
        if told := words(row):
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sharing"):
                say.caption(told, width="content")
                if row.maker == me and row.status != "running":
                    button(store, row, "sharing_button")


def button(store: Store, row: SessionRow, key: str) -> None:
    """Draw a button that shares the run, or makes it private again."""
    label, work = "Share" if row.private else "Make private", partial(store.share, row.id, row.private)
    outcome.button(label, PLACE, work, key, type="tertiary")
