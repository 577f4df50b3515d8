"""A tour for a first visit, from the first question to a decision; it can be skipped at any step."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from core.corpus.samples import samples
from ui.app import state
from ui.app.data import table

AT = "tour_at"  # the step shown, from 0; None: no tour


class TourStep(NamedTuple):
    """A step of the tour."""

    page: str  # the file of the page it opens
    title: str
    text: str
    view: str = ""  # the view of the page, for pages that have several


STEPS = tuple(TourStep(**fields) for fields in table("tour")["step"])


def offer() -> None:
    """Draw a button that starts the tour on Compare."""
    if st.button(f"Take the tour ({len(STEPS)} steps)", key="take_tour", type="tertiary"):
        st.session_state[AT] = 0
        st.switch_page("compare.py")


def show() -> None:
    """Draw the current step of the tour above the page it describes."""
    at, corpus = st.session_state.get(AT), st.session_state[state.CORPUS]
    if at is None:
        return
    step = STEPS[at]
    if at == 0 and not (st.session_state.get(state.QUESTION) or "").strip() and samples(corpus):
        state.fill_in(samples(corpus)[0].query)
    with st.container(border=True, key="tour"):
        st.markdown(f"**{at + 1} of {len(STEPS)} · {step.title}.** {step.text}")
        with st.container(horizontal=True):
            if at and st.button("Back", key="tour_back"):
                _to(at - 1)
            if at + 1 < len(STEPS):
                if st.button("Next", key="tour_next", type="primary"):
                    _to(at + 1)
                if st.button("Skip tour", key="tour_skip", type="tertiary"):
                    _to(None)
            elif st.button("Done", key="tour_done", type="primary"):
                _to(None)


def _to(at: int | None) -> None:
    before = st.session_state[AT]
    st.session_state[AT] = at
    if at is not None and STEPS[at][::3] != STEPS[before][::3]:
        view = STEPS[at].view
        st.switch_page(STEPS[at].page, query_params={"view": view} if view else None)
    st.rerun()
