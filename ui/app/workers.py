"""The choice of where work runs: in this process, on local workers, or on a Dask scheduler."""

from __future__ import annotations

import os

import streamlit as st

from core.backends.workers.place import WorkPlace, choices
from core.domain.errors import BadInput
from ui.app import state
from ui.app.markup import md

HELP = (
    "Workers are processes of their own and give the same results. Several on one machine at once measure "
    "longer times."
)


def choose(key: str, label: str = "Run by", width: int = 260) -> WorkPlace | None:
    """Draw the choice of where to run and return it; draws nothing if Dask is not installed."""
    known = _known()
    if not known:
        return None
    if st.session_state.get(key) not in known:
        st.session_state[key] = next(iter(known))
    st.selectbox(label, list(known), key=key, width=width, persist_state="session", help=HELP)
    return known[st.session_state[key]]


def chosen(key: str) -> WorkPlace | None:
    """Return the place chosen by a control elsewhere on the page."""
    return _known().get(st.session_state.get(key, ""))


def _known() -> dict[str, WorkPlace | None]:
    try:
        return choices(state.engine().settings, os.cpu_count() or 1)
    except BadInput as error:
        st.warning(md(str(error)))
        return {}
