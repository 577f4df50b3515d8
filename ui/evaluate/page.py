"""Evaluate: measure routes on labelled questions, then compare and inspect them."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import leaderboard
from core.evaluation.background import Entry
from core.evaluation.experiment_store import Evaluation
from ui.app import evaluated, opened, outcome, state
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md
from ui.app.routes import title
from ui.app.tabs import tabs
from ui.evaluate import audit, chunkings, differences, matrix, new, questions, routers, saved, tradeoffs
from ui.evaluate import leaderboard as leaderboard_view
from ui.evaluate.view import Look, figures

METRIC, BASELINE = "evaluate_metric", "evaluate_baseline:{}"
VIEWS = {
    "Leaderboard": leaderboard_view.draw,
    "Differences": differences.draw,
    "By failure mode": differences.by_mode,
    "Questions": questions.draw,
    "Against another evaluation": differences.against,
    "Best per question": tradeoffs.draw,
    "Matrix": matrix.draw,
    "Routers": routers.draw,
    "Stability": differences.stability,
    "Decision audit": audit.draw,
    "Chunkings": chunkings.draw,
}


def draw() -> None:
    """Draw the page."""
    outcome.draw(saved.PLACE)
    entries = saved.entries()
    saved.choose_begun([entry.name for entry in entries])
    saved.progress()
    here = str(st.session_state.get(state.CORPUS) or "")
    none = not evaluated.of_corpus(here)
    if none:
        st.subheader(md(f"No evaluation of {here} yet"), anchor=False)
    _new(none)
    _opened(entries)
    if entries:
        label = f"Saved evaluations ({len(entries)})"
        with st.expander(label, key="evaluate_all", on_change="rerun") as panel:
            if panel.open:
                saved.table(entries)
    opened.link()


def _new(none: bool) -> None:
    """Draw the form if it is open: by a click, without an evaluation, or for the address' label set."""
    wanted = st.query_params.get("labels")
    asked = wanted is not None and st.session_state.get("evaluate_asked") != wanted
    if asked:
        st.session_state["evaluate_asked"] = wanted
    if asked or evaluated.NEW not in st.session_state:
        st.session_state[evaluated.NEW] = asked
    if (none and saved.BEGUN not in st.session_state) or st.session_state[evaluated.NEW]:
        given: Any = {"on_change": lambda: st.session_state.__setitem__(evaluated.NEW, False)}
        with st.expander("New evaluation", expanded=True, key="evaluate_form", **given):
            new.form()


def _opened(entries: list[Entry]) -> None:
    """Draw the chosen evaluation."""
    look = None
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        evaluation = evaluated.chosen(noted=False, offer=False)
        if evaluation is not None and evaluation.outcomes and evaluation.figures:
            look = _look(evaluation)
        if entries and not st.session_state[evaluated.NEW]:
            st.button("New evaluation", key="evaluate_begin", on_click=new.open_form)
    entry = next((one for one in entries if one.name == st.session_state.get(evaluated.CHOSEN)), None)
    if evaluation is not None:
        evaluated.note(evaluation)
    if entry is not None:
        saved.ended(entry)
    if look is not None:
        _views(look)
    elif evaluation is not None:
        text = "This evaluation ended before its figures were computed. Resume it to compute them."
        if entry is not None and entry.state == "under way":
            text = "This evaluation is running. Its figures appear when it finishes or is stopped."
        st.info(text)
    if entry is not None:
        with st.expander("About this evaluation"):
            saved.about(entry, evaluation)


@st.fragment  # a click leaves the choice of the evaluation and the sidebar as they are
def _views(look: Look) -> None:
    """Draw the views of the evaluation."""
    views = {name: partial(draw, look) for name, draw in VIEWS.items()}
    tabs(views, leaderboard_view.TAB, views)


def _look(evaluation: Evaluation) -> Look:
    """Draw the baseline and the metric that all views use, and return them with the figures."""
    note, key = term("baseline", "Choosing another one recomputes."), BASELINE.format(evaluation.name)
    titles = {route: title(route) for route in evaluation.routes}
    baseline = choice("baseline", key, "Baseline", titles, usual=evaluation.baseline, width=230, help=note)
    found = figures(evaluation, baseline)
    metric = choice("metric", METRIC, "Metric", leaderboard.metrics(found), format_func=titled, width=190)
    return Look(evaluation, found, metric, baseline)
