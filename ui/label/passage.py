"""The annotator's view of a passage: readable type, with the question's words lightly marked."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import Marker
from core.backends.terms import Analyzer, analyzer
from core.corpus import catalogue
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.relevance import is_unmatched
from core.evaluation.dataset import Question
from core.store.labels import Pooled
from ui.app import state
from ui.app.markup import fragment
from ui.app.names import named
from ui.app.routes import title
from ui.components.hits import marked
from ui.components.markdown import is_markdown, rendered


def passage(corpus: str, question: Question, one: Pooled, *, routes: bool) -> Markup:
    """Return the passage; the text of a Markdown file is rendered, with its source on demand.

    Without `routes`, it does not show which or how many routes found it, as that would bias the annotator.
    """
    read, markdown = one.passage, is_markdown(one.passage.doc_id)
    fingerprint = current_fingerprint(corpus, settings=state.engine().settings)
    words = Marker(question.query.text, (), _analyzer(corpus, fingerprint))
    body = rendered(read.text, words) if markdown else marked(read.text, words)
    ranks = sorted((rank, title(route)) for route, rank in one.found) if routes else None
    outside = is_unmatched(read.id)
    return fragment("label.passage", named(corpus, read), read, outside, body, markdown, ranks)


@st.cache_resource(max_entries=16, show_spinner=False)
def _analyzer(corpus: str, fingerprint: str | None) -> Analyzer:  # noqa: ARG001 - part of the cache key
    """Return the corpus' analyzer, or one for whole words if the corpus has no index here."""
    try:
        info = catalogue.describe(corpus, state.engine().settings).info
    except RouteScopeError:
        info = None
    return analyzer(info.language) if info is not None else replace(analyzer("english"), language="none")
