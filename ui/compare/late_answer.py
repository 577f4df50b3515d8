"""An answer for one route of a run that is over: asked for, followed while written, or why it failed."""

from __future__ import annotations

import streamlit as st

from core.analysis.run_view import worked
from core.domain.types import Run
from core.engine.late_answers import Answering
from ui.app import account, redraw, say, state
from ui.app.markup import show, tag
from ui.app.routes import title

POLL_S = 0.4  # seconds between looks
ROUTE = "answer_for"


def write(run: Run) -> None:
    """Offer the routes that have hits and no answer; one answer a run is written at a time."""
    writing = state.engine().answering(run.id)
    if writing is not None and not writing.done:
        follow(writing)
        return
    names = [result.route for result in worked(run) if result.hits and result.answer is None]
    if names:
        if st.session_state.get(ROUTE) not in names:
            st.session_state[ROUTE] = names[0]
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="write_answer_row"):
            name = st.selectbox("Route to answer", names, key=ROUTE, format_func=title, width=370)
            by_model = state.answer_style().by == "model"
            needs = account.needs("ask a model" if by_model else "ask")
            pressed = st.button("Write answer", key="write_answer", **needs)
        if pressed:
            with say.errors():
                state.engine().start_answer(run.id, name, state.answer_style())
                st.rerun()
            return
    if writing is not None and writing.error and writing.route in names:
        say.error(f"{title(writing.route)} could not write an answer: {writing.error}")


@st.fragment(run_every=POLL_S)
def follow(writing: Answering) -> None:
    """Draw which answer is being written and for how long, and redraw the page when it ends."""
    if writing.done:
        redraw.page()
    waits = f", {writing.waits}" if writing.waits else ""
    say.info(f"Writing the answer for {title(writing.route)}: {writing.seconds:.0f} s{waits}")
    if writing.text:
        show(tag("div", tag("div", writing.text, css="said", dir="auto"), css="rs rs-note"))
