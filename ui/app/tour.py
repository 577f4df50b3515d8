"""A tour of five steps for a first visit: each points at what is on the page; it can be left at any time."""

from __future__ import annotations

import streamlit as st

from core.corpus.samples import samples
from ui.app import state

AT = "tour_at"  # the step shown, from 0; None: no tour
STEPS = (
    (
        "Ask",
        "Enter a question in the box. The sample question there now uses recorded model replies, so it runs"
        " in a second or two. Select the routes to compare under Routes.",
    ),
    (
        "Run",
        "Press Run, or Ctrl+Enter (⌘+Enter on a Mac). Every route gets the same question. Columns fill in as "
        "routes finish.",
    ),
    (
        "Compare",
        "The first column is the baseline. Arrows show rank changes against it. “New” and “lost” mark "
        "passages that only one of the two found. Point at a passage to highlight it in every route. "
        "◆ marks labelled passages.",
    ),
    (
        "Find out why",
        "The pages on the left analyse this run. Why shows the step that lost a passage. Fusion lets you try "
        "other weights, and Evaluators other thresholds. Latency shows where the time went.",
    ),
    (
        "Share it",
        "Every run is stored under Sessions and opens again without a model. The link in the sidebar opens "
        "the view on your screen.",
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
                if st.button("Skip tour", key="tour_skip", type="tertiary"):
                    _to(None)
            elif st.button("Done", key="tour_done", type="primary"):
                _to(None)


def _to(at: int | None) -> None:
    st.session_state[AT] = at
    st.rerun()
