"""Opens a corpus in the background: this page waits with a message, and no other page waits."""

from __future__ import annotations

from concurrent.futures import wait

import streamlit as st

from ui.app import redraw, state
from ui.app.markup import md

PATIENCE_S = 0.5  # most corpora are open by then: no word is said about those
POLL_S = 0.5  # seconds between looks at one that is being opened


def wait_for(name: str) -> None:
    """Go on once corpus `name` is open, or cannot be: what asks for it then says why. Until then the page is
    drawn no further, and again when it is.
    """
    opening = state.engine().opening(name)
    wait([opening], PATIENCE_S)
    if opening.done():
        return
    st.info(md(f"Opening corpus {name}. This page continues when it is ready."))
    _look(name)
    st.stop()


def begin(name: str) -> None:
    """Begin to open corpus `name` without waiting for it; the page is drawn again once it is open."""
    opening = state.engine().opening(name)
    wait([opening], PATIENCE_S)
    if not opening.done():
        _look(name)


@st.fragment(run_every=POLL_S)
def _look(name: str) -> None:
    if state.engine().opening(name).done():
        redraw.page()
