"""A tour of five steps for a first visit: each points at what is on the page; it can be left at any time."""

from __future__ import annotations

import streamlit as st

from core.corpus.samples import samples
from ui.app import state

AT = "tour_at"  # the step shown, from 0; None: no tour
STEPS = (
    (
        "Ask",
        "A question goes into the box. A sample stands there now: its model texts are recorded, so it runs"
        " in a second or two. Routes lets you choose who answers.",
    ),
    (
        "Run",
        "Press Run, or Ctrl+Enter (⌘+Enter on a Mac). Every route takes the same question; columns fill as "
        "they end.",
    ),
    (
        "Compare",
        "The first column is the baseline. Arrows tell what moved against it, “new” and “lost” what only one "
        "of the two found. Point at a passage: it lights up in every route. ◆ marks labelled passages.",
    ),
    (
        "Ask why",
        "The pages on the left take this run apart: Why names the step that lost a passage, Fusion moves "
        "weights, Evaluators thresholds, Latency shows where the seconds went.",
    ),
    (
        "Keep it",
        "Every run is kept under Sessions and opens again without a model. The link in the sidebar reopens "
        "exactly what is on screen.",
    ),
)


def offer() -> None:
    """A button that begins the tour on Compare."""
    if st.button("Take the tour (5 steps)", key="take_tour", type="tertiary"):
        st.session_state[AT] = 0
        st.switch_page("compare.py")


def show(corpus: str) -> None:
    """The step of the tour that is under way, above what it speaks of."""
    at = st.session_state.get(AT)
    if at is None:
        return
    title, text = STEPS[at]
    if at == 0 and not (st.session_state.get(state.QUESTION) or "").strip() and samples(corpus):
        state.fill_in(samples(corpus)[0].query)
    with st.container(border=True, key="tour"):
        st.markdown(f"**{at + 1} of {len(STEPS)} · {title}.** {text}")
        with st.container(horizontal=True):
            if at and st.button("Back", key="tour_back"):
                _to(at - 1)
            if at + 1 < len(STEPS):
                if st.button("Next", key="tour_next", type="primary"):
                    _to(at + 1)
                if st.button("Skip the tour", key="tour_skip", type="tertiary"):
                    _to(None)
            elif st.button("Done", key="tour_done", type="primary"):
                _to(None)


def _to(at: int | None) -> None:
    st.session_state[AT] = at
    st.rerun()
