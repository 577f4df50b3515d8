"""Evaluate: measure routes on labelled questions, then compare and inspect them."""

from __future__ import annotations

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import leaderboard
from core.evaluation.experiment_index import Entry
from core.evaluation.experiment_store import Evaluation
from ui.app import address, evaluated, opened
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md
from ui.app.routes import title
from ui.app.tabs import tabs
from ui.evaluate import (
    against,
    audit,
    chunkings,
    differences,
    modes,
    new,
    questions,
    routers,
    saved,
    stability,
    tradeoffs,
)
from ui.evaluate import leaderboard as leaderboard_view
from ui.evaluate.view import Look, figures

NEW = "evaluate_new"
METRIC, BASELINE = "evaluate_metric", "evaluate_baseline"
OF = "evaluate_baseline_of"  # the evaluation that the baseline was chosen for


def draw() -> None:
    """Draw the page."""
    if error := st.session_state.pop("evaluate_said", None):
        st.error(md(error))
    saved.undo()
    entries = saved.entries()
    saved.choose_begun([entry.name for entry in entries])
    saved.progress()
    _new(entries)
    if entries:
        label = f"Saved evaluations ({len(entries)})"
        with st.expander(label, key="evaluate_all", on_change="rerun") as panel:
            if panel.open:
                saved.table(entries)
        _open(entries)
    else:
        st.caption("No evaluations yet. Start one above; its results appear here.")
    opened.link()


def _new(entries: list[Entry]) -> None:
    """Draw the form, open if there is no evaluation yet or the address names a label set."""
    asked = (
        "labels" in st.query_params and st.session_state.get("evaluate_asked") != st.query_params["labels"]
    )
    if asked:
        st.session_state["evaluate_asked"] = st.query_params["labels"]
    if asked or NEW not in st.session_state:
        st.session_state[NEW] = asked or not entries
    if st.session_state.pop(new.CLOSE, False):
        st.session_state[NEW] = False
    with st.expander("New evaluation", key=NEW, on_change="rerun") as panel:
        if panel.open:
            new.choose()


def _open(entries: list[Entry]) -> None:
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    with row:
        evaluation = evaluated.chosen(noted=False)
    entry = next((one for one in entries if one.name == st.session_state.get(evaluated.CHOSEN)), None)
    look = None
    with row:
        if evaluation is not None and evaluation.outcomes and evaluation.figures:
            look = _look(evaluation)
    if evaluation is not None:
        evaluated.note(evaluation)
    if entry is not None:
        saved.draw_saved(entry, evaluation)
    if look is not None:
        _views(look)
    elif evaluation is not None:
        under_way = entry is not None and entry.state == "under way"
        st.info(
            "This evaluation is running. Its figures appear when it finishes or is stopped."
            if under_way
            else "This evaluation ended before its figures were computed. Resume it to compute them."
        )


def _views(look: Look) -> None:
    tabs(
        {
            "Leaderboard": lambda: leaderboard_view.draw(look),
            "Differences": lambda: differences.draw(look),
            "By failure mode": lambda: modes.draw(look),
            "Questions": lambda: questions.draw(look),
            "Against another evaluation": lambda: against.draw(look),
            "Trade-offs": lambda: tradeoffs.draw(look),
            "Routers": lambda: routers.draw(look),
            "Stability": lambda: stability.draw(look),
            "Decision audit": lambda: audit.draw(look),
            "Chunkings": lambda: chunkings.draw(look),
        },
        "evaluate_tab",
    )


def _look(evaluation: Evaluation) -> Look:
    """Draw the baseline and the metric that all views use, and return them with the figures."""
    names, usual = list(evaluation.routes), evaluation.baseline
    if st.session_state.get(OF, evaluation.name) != evaluation.name and not address.is_new("baseline"):
        st.session_state[BASELINE] = usual
        address.keep("baseline", None)
    st.session_state[OF] = evaluation.name
    baseline = choice(
        "baseline",
        BASELINE,
        "Baseline",
        names,
        usual=usual,
        format_func=title,
        width=230,
        help=term("baseline", "Choosing another one recomputes the comparisons."),
    )
    found = figures(evaluation, baseline)
    options = leaderboard.metrics(found)
    metric = choice("metric", METRIC, "Metric", options, format_func=titled, width=190)
    return Look(evaluation, found, metric, baseline)
