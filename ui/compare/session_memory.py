"""The session a question is asked in: what is remembered of it, and forgetting it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.domain.types import Remembered
from core.store import Store
from ui.app import say, state
from ui.app.markup import cut, join, show, tag

DOOMED = "doomed"  # (session, numbers) that are forgotten when that is confirmed
HELP = (
    "RouteScope stores the questions of this session and the first answer to each on this machine, and uses "
    "them as the conversation before later questions. Leave empty to store nothing."
)


def draw() -> None:
    """Draw the session's name, what it remembers, and a way to delete that."""
    name, store = state.session(), state.engine().store
    box: dict[str, Any] = {"max_chars": 80, "width": 560, "placeholder": "No session", "help": HELP}
    st.text_input("Session", key=state.SESSION, persist_state="session", **box)
    if not name:
        return
    if store is None:
        st.caption("Runs are not stored here, so a session cannot be stored either.")
        return
    with say.errors():
        turns = store.recall(name)
        if not turns:
            st.caption("This session has no turns yet.")
            return
        with st.container(height=min(60 + 40 * len(turns), 280), width=560):
            show(join(_line(turn) for turn in turns))
        _forget(store, name, turns)


def _line(turn: Remembered) -> object:
    who = tag("span", f"{turn.number} {turn.role} ", css="dim")
    return tag("div", who, tag("span", cut(turn.text, 400), dir="auto"))


def _forget(store: Store, name: str, turns: Sequence[Remembered]) -> None:
    """Draw the choice of turns to delete, and ask once more before deleting them."""
    numbers = [turn.number for turn in turns]
    picked = st.multiselect(
        "Turns to delete", numbers, key=f"doomed:{name}:{numbers}", placeholder="All turns", width=560
    )
    count = f"{len(picked)} turns" if len(picked) != 1 else "1 turn"
    if st.button(f"Delete {count}" if picked else "Delete this session", key="forget"):
        st.session_state[DOOMED] = (name, picked)
    if st.session_state.get(DOOMED) != (name, picked):
        return
    st.warning("You cannot undo this. Runs stay in the list, with their questions.")
    with st.container(horizontal=True):
        sure = st.button("Delete permanently", type="primary", key="forget_now")
        if sure:
            store.forget(name, picked or None)
        if sure or st.button("Cancel", key="forget_not"):
            del st.session_state[DOOMED]
            st.rerun()
