"""The Answers tab: what was written, how it came about, and the tables and trees it came from."""

from __future__ import annotations

import streamlit as st

from core.branches import trees
from core.reading_drafts import writing
from core.types import Run
from ui import branches
from ui.cited import answers
from ui.drafts import drafts
from ui.markup import show
from ui.tables import queries, tables


def draw(run: Run) -> None:
    """The answers side by side, then each way of writing that some route of the run went."""
    show(answers(run))
    if any(writing(result) for result in run.results):
        st.subheader("Drafts and their critique", anchor=False)
        show(drafts(run))
    if trees(run):
        st.subheader("Segments tried", anchor=False)
        branches.draw(run)
    if any(any(queries(result)) for result in run.results):
        st.subheader("Queries to tables", anchor=False)
        show(tables(run))
