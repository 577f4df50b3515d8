"""Batch runs over all labelled questions of a corpus: starting, following and stopping them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.types import RouteResult
from core.evaluation.tuning import batch_run as batches
from core.evaluation.tuning.batch_run import BatchRun
from ui.app import opening, say, state
from ui.app.progress import follow
from ui.app.routes import on_page

AUTOMATIC_S = 10.0  # seconds: what takes no longer starts by itself


def batch_ran(
    corpus: str, result: RouteResult, parameters: Mapping[str, Any], key: str = "labelled"
) -> BatchRun | None:
    """Return the finished batch run of a route over the labelled questions of `corpus`, or None.

    While there is none, the page shows a button to start it, its progress, or why it cannot run; the page is
    redrawn when it ends. Routes that can do without a model or the web do so.
    """
    opening.wait_for(corpus)
    engine, routes = state.engine(), {result.route: parameters}
    try:
        known = batches.begun(engine, corpus, routes)
        if known is None:
            batches.check(engine, corpus, routes)
            count = _count(corpus, str(engine.settings.home))
            seconds = batches.seconds(result, count)
            label = f"Run all {count} labelled questions (about {milliseconds(1000 * seconds)})"
            if seconds > AUTOMATIC_S and not st.button(label, key=f"{key}:begin"):
                return None
            known = batches.survey(engine, corpus, routes)
        elif known.done and not known.complete:
            why = f"The batch run failed: {known.error}." if known.error else "The batch run was stopped."
            say.caption(f"{why} It ran {known.finished} of {known.total} labelled questions.")
            if not st.button("Run again", key=f"{key}:again"):
                return None
            known = batches.survey(engine, corpus, routes)
    except RouteScopeError as error:
        if isinstance(error, batches.Unlabelled):
            say.info(f"Corpus {corpus} has no labelled questions, so the effect cannot be measured.")
            st.page_link("label.py", label="Label questions", icon=":material/checklist:")
        else:
            say.info(on_page(str(error)))
        return None
    if known.complete:
        return known
    with st.container(key=f"{key}:progress"):
        if not follow(known, "{0.finished} of {0.total} labelled questions".format, key=f"{key}:stop"):
            st.rerun()  # it has ended since
    return None


@st.cache_data(ttl=60, max_entries=16, show_spinner="Reading the labelled questions")
def _count(corpus: str, home: str) -> int:  # noqa: ARG001 - part of the cache key
    return len(batches.written(state.engine(), corpus).questions)
