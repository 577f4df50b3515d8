"""Status of the models and the store."""

from __future__ import annotations

import streamlit as st

from core.domain.needs import Need
from core.engine import endpoints
from core.engine.availability import missing, why_not
from core.routes.registry import routes
from ui.app import state
from ui.app.markup import md


def summary() -> None:
    """Draw the models and how many routes can run with them."""
    engine, settings = state.engine(), state.engine().settings
    gaps = missing(engine, st.session_state[state.CORPUS])
    able = sum(why_not(route, gaps) is None for route in routes().values())
    with st.expander("Models"):
        where = f"{settings.llm_base_url or 'embedded'}, {settings.llm_mode}"
        lines = [f"Embedder: {settings.embedder}", f"Language model: {settings.llm} ({where})"]
        if Need.LLM in gaps:
            st.warning(md(f"{Need.LLM.value}: {gaps[Need.LLM]}"))
        elif why := endpoints.chat(settings).error:
            st.warning(md(f"The language model did not answer when it was last tested: {why}"))
        lines += [  # what is made for a corpus is shown there
            f"Not available, {need.value}: {reason}"
            for need, reason in gaps.items()
            if need.enrichment is None and need is not Need.LLM
        ]
        st.caption("\n\n".join(map(md, lines)))
    st.caption(f"{able} of {len(routes())} routes can run on this corpus")


def trouble() -> None:
    """Draw the store's warnings."""
    for warning in state.store().warnings:
        st.warning(md(warning))
