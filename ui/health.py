"""What works here, in the sidebar."""

from __future__ import annotations

import streamlit as st

from core.route import routes
from ui import state
from ui.markup import md
from ui.routes import missing, why_not


def summary() -> None:
    """The models and how many routes can run with them."""
    settings = state.engine().settings
    gaps = missing()
    able = sum(why_not(route, gaps) is None for route in routes().values())
    with st.expander("Models"):
        st.caption(md(f"Embedder: {settings.embedder}"))
        where = f"{settings.llm_base_url or 'embedded'}, {settings.llm_mode}"
        st.caption(md(f"Language model: {settings.llm} ({where})"))
        for need, reason in gaps.items():
            st.warning(md(f"{need.value}: {reason}"))
    st.caption(f"{able} of {len(routes())} routes can run here")
    store = state.engine().store
    for warning in store.warnings if store is not None else ["runs are not stored here"]:
        st.warning(md(warning))
