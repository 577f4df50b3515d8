"""Each query term's contribution to a passage's BM25 score, compared with the score stored in the run."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.analysis.term_contributions import contributions, searched_by_terms
from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import Passage, Run
from ui.app import opening, say, state
from ui.app.markup import cut, render, show

TOLERANCE = 1e-3  # of a score: what rounding may explain


def draw(run: Run, passage: Passage) -> None:
    """Draw each term's part of the BM25 score, for the question or another text searched by terms."""
    stored = searched_by_terms(run) or {run.query.text: {}}
    text = run.query.text if run.query.text in stored else next(iter(stored))
    if len(stored) > 1:
        key, short = f"terms_of:{run.id}", partial(cut, limit=90)
        text = st.selectbox("BM25 query", list(stored), format_func=short, key=key) or text
    opening.wait_for(run.corpus)
    try:
        corpus = state.engine().corpus(run.corpus)
        found = contributions(corpus, text, passage)
    except BadInput:
        st.caption("No BM25 score: the current corpus does not contain this passage.")
        return
    except RouteScopeError as error:
        say.caption(f"BM25 term scores are not available: {error}")
        return
    total, score = sum(one.part for one in found), stored[text].get(passage.id)
    most = max((one.part for one in found), default=0.0) or 1.0
    show(render("terms", found=found, note=_beside(total, score), total=total, most=most))
    if corpus.fingerprint != run.fingerprint:
        st.caption("The corpus was reindexed after this run. These figures come from the current index.")


def _beside(total: float, stored: float | None) -> str:
    """Compare the sum with the score stored in the run."""
    if stored is None:
        return "Score of a term = IDF × TF part. No BM25 search with this query lists the passage."
    if abs(total - stored) <= TOLERANCE * max(1.0, abs(stored)):
        return "Score of a term = IDF × TF part. The sum is the score stored in the run."
    return f"Score of a term = IDF × TF part. The run stored {stored:.2f}, from an earlier index."
