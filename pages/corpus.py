"""Corpus: what is searched, how it was cut and indexed, and what repeats itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from core.corpus import catalogue
from ui.app import corpora, link, opened, opening, say, state, workers
from ui.app.tabs import tabs
from ui.corpus import access, add, chunkings, documents, hubs, near_duplicates, own_questions, passages
from ui.corpus import state as corpus_state
from ui.your_pipeline import page as pipelines

VIEWS: dict[str, Callable[[str], None]] = {
    "State": corpus_state.draw,
    "Add": add.draw,
    own_questions.TAB: own_questions.draw,
    "Documents and chunks": documents.draw,
    "Passages": passages.draw,
    "Chunkings": chunkings.draw,
    "Near-duplicates": near_duplicates.draw,
    "Hubs": hubs.draw,
    "Access": access.draw,
    "Your pipeline": lambda _: pipelines.draw(),
}
INDEXING = ("State", "Add", "Documents and chunks", "Chunkings")  # where an index can be built
UNBUILT = ("State", "Add", "Your pipeline")  # what can be drawn of a corpus without a usable index


def draw(view: str, name: str) -> None:
    """One tab; a corpus that cannot be searched says why."""
    if view not in UNBUILT and catalogue.describe(name, state.engine().settings).state in (
        "not built",
        "damaged",
    ):
        corpora.notice(name)
        return
    with say.errors():
        if view not in UNBUILT:
            opening.wait_for(name)
        if view in INDEXING:
            workers.choose(corpora.BY, "Run on")
        VIEWS[view](name)


name: str = st.session_state[state.CORPUS]
link.at_corpus(name)
tabs({view: partial(draw, view, name) for view in VIEWS}, "corpus_tab")
opened.link()
