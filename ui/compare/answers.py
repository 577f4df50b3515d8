"""The Answers tab: what was written, and the tables it came from."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.analysis.answers import writing
from core.domain.types import Run
from core.steps.beam import trees
from ui.app import opened
from ui.app.markup import show, tag
from ui.compare.database_results import queries, tables
from ui.components import complaint
from ui.components.citations import answers


def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the answers side by side, with links to how they were judged, and database queries."""
    show(answers(run))
    with st.container(horizontal=True):
        for result in run.results:
            if result.answer_status != "not asked" and run.status != "running":
                complaint.of_result(run, result, f"wrong_answer_{result.route}", gold)
    if any(writing(result) for result in run.results):
        opened.to("steps.py", "View drafts and critiques in Steps", view="Evaluators", tab="Drafts")
    if trees(run):
        opened.to("steps.py", "View the beam search in Steps", view="Evaluators", tab="Branches")
    if any(queries(result) for result in run.results):
        show(tag("div", tag("h3", "Database queries", css="rs-part"), css="rs"))
        show(tables(run))
