"""A tour for a first visit, from the first question to a decision: it can be left at any time."""

from __future__ import annotations

import streamlit as st

from core.corpus.samples import samples
from ui.app import state

AT = "tour_at"  # the step shown, from 0; None: no tour
STEPS = (
    (
        "compare.py",
        "Ask",
        "Enter a question in the box. The sample question there now uses recorded model replies, so it runs"
        " in a second or two. Select the routes to compare under Routes.",
    ),
    (
        "compare.py",
        "Run",
        "Press Run, or Ctrl+Enter (⌘+Enter on a Mac). Every route gets the same question. Columns fill in as "
        "routes finish.",
    ),
    (
        "compare.py",
        "Compare",
        "The first column is the baseline. Arrows show rank changes against it. “New” and “lost” mark "
        "passages that only one of the two found. Point at a passage to highlight it in every route. "
        "◆ marks labelled passages.",
    ),
    (
        "why.py",
        "Find out why",
        "Choose a route and a passage. The page shows the step that lost it, and which route keeps it.",
    ),
    (
        "transform.py",
        "See what was searched",
        "Rewrites, sub-questions and hypothetical answers, each with the passages that only it found.",
    ),
    (
        "fusion.py",
        "Try other weights",
        "Move a weight: the ranking changes at once, for this question and for all labelled ones.",
    ),
    ("graph.py", "Follow a walk", "Where a walk over the graph of entities began, and what it reached."),
    (
        "evaluators.py",
        "Try other thresholds",
        "What was graded and decided, and what another threshold would have decided.",
    ),
    ("latency.py", "See where the time goes", "A waterfall for each route; the critical path is marked."),
    (
        "label.py",
        "Label passages",
        "Judge a passage with the keys 0 to 3. The example set is for trying: delete it at any time.",
    ),
    (
        "evaluate.py",
        "Measure routes",
        "Every difference comes with its interval. The example evaluation is made in the background at the"
        " first start.",
    ),
    (
        "tune.py",
        "Tune on one half",
        "Thresholds, parameters and weights are chosen on one half of the questions and shown on the other.",
    ),
    (
        "release.py",
        "Decide",
        "Set criteria. The page names the route to ship, what it does worse, and how sure that is.",
    ),
    (
        "sessions.py",
        "Go back",
        "Every run is stored and opens again without a model. Link to this view, in the sidebar, opens what"
        " is on your screen.",
    ),
    (
        "corpus.py",
        "Add your documents",
        "Index a folder or files. Your pipeline, below, adds a retriever of your own as a route.",
    ),
)


def offer() -> None:
    """A button that begins the tour on Compare."""
    if st.button(f"Take the tour ({len(STEPS)} steps)", key="take_tour", type="tertiary"):
        st.session_state[AT] = 0
        st.switch_page("compare.py")


def show() -> None:
    """The step of the tour that is under way, above the page it speaks of."""
    at, corpus = st.session_state.get(AT), st.session_state[state.CORPUS]
    if at is None:
        return
    _, title, text = STEPS[at]
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
    before = st.session_state[AT]
    st.session_state[AT] = at
    if at is not None and STEPS[at][0] != STEPS[before][0]:
        st.switch_page(STEPS[at][0])
    st.rerun()
