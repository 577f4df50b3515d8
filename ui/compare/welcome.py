"""What a first visit sees: what this is for and what to do now."""

from __future__ import annotations

import streamlit as st

from core.corpus.samples import samples
from ui.app import tour
from ui.app.markup import show, tag
from ui.compare.ask import sample_buttons


def hello(corpus: str) -> None:
    """Three steps, then every sample question of the corpus to click."""
    steps = (
        "Pick a sample question below, or write your own above.",
        "Press Ctrl+Enter (⌘+Enter on a Mac), or Run.",
        "Compare: what every route searched with and found, what moved against the baseline, what it took.",
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
    if not samples(corpus):
        st.caption("This corpus brings no sample questions: write one above.")
        return
    sample_buttons(corpus, "hello", columns=2)
