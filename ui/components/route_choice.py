"""The choice of one route of a run, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.domain.types import Run
from ui.app import address
from ui.app.markup import cut


def route_choice(run: Run, names: Sequence[str], key: str) -> str:
    """Draw a choice among `names`, stored under `key`, and return the chosen route, at first the first."""
    titles = {result.route: result.title for result in run.results}
    address.take("route", key, address.one_of(list(names)))
    if st.session_state.get(key) not in names:
        st.session_state[key] = names[0]
    chosen: str = st.selectbox(
        "Route",
        names,
        key=key,
        width=260,
        persist_state="session",
        format_func=lambda name: cut(titles[name], 60),
    )
    return chosen
