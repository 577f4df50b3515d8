"""The Answers tab: what was written, the tables it came from, and writing an answer for one more route."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.answers import writing
from core.analysis.run_view import Recorded, recorded, worked
from core.domain.outputs import TableResult
from core.domain.types import RouteResult, Run
from core.engine.engine import Answering
from core.steps.beam import trees
from ui.app import account, opened, redraw, say, state
from ui.app.markup import render, show, tag
from ui.app.routes import title
from ui.components.citations import answers

POLL_S = 0.4  # seconds between looks at an answer that is being written
ROUTE = "answer_for"
MAX_ROWS = 50  # rows of a query's result
CELL = 200  # characters


def draw(run: Run) -> None:
    """Draw the answers side by side, with links to how they were judged, and database queries."""
    if run.status != "running":
        _write(run)
    show(answers(run))
    if any(writing(result) for result in run.results):
        opened.to("steps.py", "View drafts and critiques in Steps", view="Evaluators", tab="Drafts")
    if trees(run):
        opened.to("steps.py", "View the beam search in Steps", view="Evaluators", tab="Branches")
    if any(queries(result) for result in run.results):
        show(tag("div", tag("h3", "Database queries", css="rs-part"), css="rs"))
        show(tables(run))


def tables(run: Run) -> Markup:
    """Return every database query of every route with its rows, or a note if the run made no query."""
    found = [(result, one) for result in run.results for one in queries(result)]
    return render("database_results", found=found, most=MAX_ROWS, cell=CELL)


def queries(result: RouteResult) -> list[Recorded[TableResult]]:
    """Return the innermost steps that queried a database."""
    found = recorded(result.spans, TableResult)
    outer = {one.span.parent for one in found}
    return [one for one in found if one.span.id not in outer]


def _write(run: Run) -> None:
    """Offer the routes that have hits and no answer; one answer a run is written at a time."""
    under_way = state.engine().answering(run.id)
    if under_way is not None and not under_way.done:
        _follow(under_way)
        return
    names = [result.route for result in worked(run) if result.hits and result.answer is None]
    if not names:
        return
    if st.session_state.get(ROUTE) not in names:
        st.session_state[ROUTE] = names[0]
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="write_answer_row"):
        name = st.selectbox("Route to answer", names, key=ROUTE, format_func=title, width=370)
        needs = account.needs("ask a model" if state.answer_style().by == "model" else "ask")
        pressed = st.button("Write answer", key="write_answer", **needs)
    if pressed:
        with say.errors():
            state.engine().start_answer(run.id, name, state.answer_style())
            st.rerun()
    elif under_way is not None and under_way.error and under_way.route in names:
        say.error(f"{title(under_way.route)} could not write an answer: {under_way.error}")


@st.fragment(run_every=POLL_S)
def _follow(under_way: Answering) -> None:
    """Draw which answer is being written and for how long, and redraw the page when it ends."""
    if under_way.done:
        redraw.page()
    waits = f", {under_way.waits}" if under_way.waits else ""
    say.info(f"Writing the answer for {title(under_way.route)}: {under_way.seconds:.0f} s{waits}")
    if under_way.text:
        show(tag("div", tag("div", under_way.text, css="said", dir="auto"), css="rs rs-note"))
