"""Gold grades: shown when the question is a labelled one of its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from core.corpus import catalogue
from core.corpus.samples import question_files
from core.errors import RouteScopeError
from core.types import Run
from ui import state

if TYPE_CHECKING:
    from core.evaluate.dataset import Written


def gold_grades(run: Run) -> Mapping[str, int]:
    """Grade (0-3) by passage id for a labelled question, from the corpus as indexed now; else empty."""
    try:
        written = _written(run.corpus)
        now = catalogue.describe(run.corpus, state.engine().settings)
    except RouteScopeError:
        return {}  # a corpus that is not known here: its runs are shown without labels
    if written is None or now.state not in ("ready", "stale"):
        return {}
    asked = (run.query.text, run.query.history)
    question = next((q for q in written.questions if (q.query.text, q.query.history) == asked), None)
    return {} if question is None else _placed(run.corpus, now.fingerprint, question.id)


@st.cache_resource(max_entries=8, show_spinner=False)
def _written(corpus: str) -> Written | None:
    from core.evaluate.dataset import written

    files = question_files(corpus)
    return written(files, name=corpus) if files else None


@st.cache_data(max_entries=500, show_spinner=False)
def _placed(corpus: str, fingerprint: str | None, question: str) -> dict[str, int]:  # noqa: ARG001 - part of the cache key
    from core.evaluate.labels import place

    known = _written(corpus)
    if known is None or not known.evidence.get(question):
        return {}
    one = replace(known, questions=(), evidence={question: known.evidence[question]})
    try:
        return dict(place(one, state.engine().corpus(corpus)).qrels.get(question, {}))
    except RouteScopeError:
        return {}  # the documents have changed since they were labelled: the run is shown without labels
