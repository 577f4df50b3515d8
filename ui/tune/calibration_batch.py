"""A route that the evaluation lacks, run now without a model to calibrate its thresholds."""

from __future__ import annotations

import streamlit as st

from core.domain.program import COMMAND
from core.domain.types import RouteResult
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning import batch_run as batches
from core.evaluation.tuning import threshold_cases
from core.evaluation.tuning.batch_run import BatchRun
from core.evaluation.tuning.threshold_cases import Found
from core.routes.registry import routes
from ui.app import state
from ui.app.markup import md
from ui.app.routes import title
from ui.components import batch_run


def batch_ran(evaluation: Evaluation, route: str) -> BatchRun | None:
    """Return the route's batch run with the evaluation's parameters, or None with a way to start it."""
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    parameters = dict((evaluation.spec.get("parameters") or {}).get(route, {}))
    if batches.begun(state.engine(), corpus, {route: parameters}, models=False) is None:
        st.caption(
            md(
                f"The evaluation has no steps of {title(route)}. You can run the route now on all labelled"
                f" questions of {corpus}, without a language model or web search. The results are not stored."
            )
        )
        if not st.button("Run the route", key=f"cal_survey:{route}"):
            st.caption("Or evaluate it with the other routes and open that evaluation here:")
            command = f"{COMMAND} eval {corpus} --routes {route} --split all --keep NAME"
            st.code(command, language=None)
            return None
    result = RouteResult(route, routes()[route].title, "ok", 0.0)
    return batch_run.batch_ran(corpus, result, parameters, "calibrate", models=False)


@st.cache_resource(max_entries=4, show_spinner="Reading the scores")
def found(name: str, _batch: BatchRun) -> Found:  # noqa: ARG001 - the name is the cache key
    """Return the thresholds in a finished batch run."""
    quotes = threshold_cases.quoted(state.engine().settings, {"corpus": _batch.corpus, "split": "all"})
    pairs = ((id, result) for id, by in _batch.results.items() for result in by.values())
    return threshold_cases.found(pairs, _batch.labelled, quotes)
