"""The Answers tab: what was written, and the tables it came from."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.analysis.answers import writing
from core.domain.types import Run
from core.steps.beam import trees
from ui.app import opened
from ui.app.markup import cut, show, tag
from ui.compare import late_answer
from ui.compare.database_results import queries, tables
from ui.components import complaint
from ui.components.citations import answers


def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the answers side by side, with links to how they were judged, and database queries."""
    if run.status != "running":
        late_answer.write(run)
    show(answers(run))
    with st.container(horizontal=True):
        for result in run.results:
            if result.answer_status != "not asked" and run.status != "running":
                key, label = f"wrong_answer_{result.route}", f"Wrong: {cut(result.title, 30)}"
                complaint.popover(run, key, gold, route=result.route, label=label)
    if any(writing(result) for result in run.results):
        opened.to("steps.py", "View drafts and critiques in Steps", view="Evaluators", tab="Drafts")
    if trees(run):
        opened.to("steps.py", "View the beam search in Steps", view="Evaluators", tab="Branches")
    if any(queries(result) for result in run.results):
        show(tag("div", tag("h3", "Database queries", css="rs-part"), css="rs"))
        show(tables(run))
