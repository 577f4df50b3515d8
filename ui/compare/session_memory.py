"""The session a question is asked in: what is remembered of it, and forgetting it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.types import Remembered
from core.store import Store
from ui.app import state
from ui.app.markup import cut, join, md, show, tag

DOOMED = "doomed"  # (session, numbers) that are forgotten when that is confirmed
HELP = (
    "RouteScope stores the questions of this session and the first answer to each on this machine, and uses "
    "them as the conversation before later questions. Leave empty to store nothing."
)


def draw() -> None:
    """Draw the session's name, what it remembers, and a way to delete that."""
    name = state.session()
    st.text_input(
        "Session",
        key=state.SESSION,
        max_chars=80,
        width=560,
        placeholder="No session",
        help=HELP,
        persist_state="session",
    )
    store = state.engine().store
    if not name:
        return
    if store is None:
        st.caption("Runs are not stored here, so a session cannot be stored either.")
        return
    try:
        turns = store.recall(name)
        if turns:
            _listing(turns)
            _forget(store, name, turns)
        else:
            st.caption("This session has no turns yet.")
    except RouteScopeError as error:
        st.error(md(str(error)))


def _listing(turns: Sequence[Remembered]) -> None:
    with st.container(height=min(60 + 40 * len(turns), 280), width=560):
        show(
            join(
                tag(
                    "div",
                    tag("span", f"{turn.number} {turn.role} ", css="dim"),
                    tag("span", cut(turn.text, 400), dir="auto"),
                )
                for turn in turns
            )
        )


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
        if st.button("Delete permanently", type="primary", key="forget_now"):
            del st.session_state[DOOMED]
            store.forget(name, picked or None)
            st.rerun()
        if st.button("Cancel", key="forget_not"):
            del st.session_state[DOOMED]
            st.rerun()
