"""The first visit: what the dashboard is for and what to do first."""

from __future__ import annotations

import streamlit as st

from core.corpus.samples import samples
from ui.app import tour
from ui.app.markup import show, tag
from ui.compare.ask import sample_buttons


def hello(corpus: str) -> None:
    """Draw three steps, then the corpus' sample questions as buttons."""
    known = samples(corpus)
    steps = (
        "Pick a sample question below, or write your own above." if known else "Write a question above.",
        "Press Ctrl+Enter (⌘+Enter on a Mac), or Run.",
        "Compare the routes: queries, hits, rank changes against the baseline, time and cost.",
    )
    show(
        tag(
            "div",
            tag("h2", "One question, every retrieval route side by side"),
            tag("ol", *(tag("li", step) for step in steps)),
            css="rs rs-hello",
        )
    )
    tour.offer()
    if known:
        sample_buttons(corpus, "hello", columns=2)
    else:
        st.caption("This corpus has no sample questions.")
        with st.container(horizontal=True, gap="small"):
            if st.button("Add documents", key="hello_add"):
                st.switch_page("corpus.py", query_params={"tab": "Add"})
            if st.button("Write or generate questions", key="hello_questions"):
                st.switch_page("label.py")
