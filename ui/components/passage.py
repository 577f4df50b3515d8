"""One passage in full: its rank in each route, its matching words, and their part in its scores."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st
from markupsafe import Markup

from core.analysis.passage_trace import PassageTrace
from core.analysis.run_view import worked
from core.analysis.term_contributions import Marker, contributions, searched_by_terms, searched_texts
from core.backends.terms import Analyzer, analyzer
from core.corpus import catalogue
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import BadInput, RouteScopeError
from core.domain.rank_changes import ranks as ranks_of
from core.domain.types import Passage, Run
from ui.app import opened, opening, say, state
from ui.app.markup import cut, fragment, md, render, show, tag
from ui.app.names import named
from ui.app.picked import PASSAGE
from ui.components.grid import View, numbered
from ui.components.hits import buttons, mark, marked

TOLERANCE = 1e-3  # of a score: what rounding may explain


def marker(run: Run) -> Marker:
    """Return a marker for the words that the run's routes searched with, split by the corpus' analyzer."""
    others = frozenset(searched_texts(run) - {run.query.text})
    return _marker(run.query.text, others, analyzer_of(run.corpus))


_marker = lru_cache(16)(Marker)  # it remembers the words that it has seen, and `excerpt` what it marked


def draw(run: Run, view: View, *, ranks: bool = True) -> None:
    """Draw the panel of the selected passage, with its rank in each route if `ranks`; nothing without one."""
    if view.lit is None:
        return
    id, passage = view.lit, _passage(run, view.lit)

    def close() -> None:
        st.session_state[PASSAGE] = None

    with st.container(border=True, key="passage_panel"):
        st.markdown(f"**{md(cut(named(run.corpus, passage), 160) if passage else id)}**")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            grade = view.gold.get(id)  # changed by buttons if the run has the passage
            can = view.gradable and id in run.passages
            marked_ = buttons(numbered(run)[id], grade) if can else mark(grade)
            show(tag("div", marked_, css="rs rs-passage-grade"))
            opened.to("why.py", "Why it has this rank", passage=id)
            if st.session_state.get(PASSAGE):
                st.button("Close", key="close_passage", type="tertiary", on_click=close)
        if ranks:
            show(_places(run, view, id))
        if passage is None:
            st.caption("Neither the run nor the current corpus contains its text.")
            return
        words = marker(run)
        known = current_fingerprint(run.corpus, settings=state.engine().settings) is not None
        written = "written" in words.kinds.values()
        show(fragment("passage.text", passage, marked(passage.text, words), written, known))
        if st.session_state.get(PASSAGE):  # chosen by a person: its words are looked up in the corpus
            _terms(run, passage)


def _passage(run: Run, id: str) -> Passage | None:
    """Return the passage from the run, else from the corpus: a labelled passage may be in no result."""
    if id in run.passages:
        return run.passages[id]
    opening.wait_for(run.corpus)
    try:
        return state.engine().corpus(run.corpus).by_ids([id]).get(id)
    except RouteScopeError:
        return None  # the caller says that there is no text


def _places(run: Run, view: View, id: str) -> Markup:
    """Return the passage's rank in every route, best first; a hint says why a route lacks it."""
    found = [(ranks_of(result.hits).get(id), result) for result in worked(run)]
    found.sort(key=lambda one: (one[0] is None, one[0] or 0))
    have = sum(rank is not None and rank <= view.depth for rank, _ in found)
    summary = f"{have} of {len(found)} routes have it in their top {view.depth}. A dash means not ranked."
    chips = [
        (
            result.title,
            rank,
            bool(rank and rank <= view.depth),
            "" if rank else PassageTrace(result).fate(id, view.depth).words,
        )
        for rank, result in found
    ]
    return fragment("passage.places", summary, chips)


def _terms(run: Run, passage: Passage) -> None:
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
    show(render("terms", found=found, note=compared(total, score), total=total, most=most))
    if corpus.fingerprint != run.fingerprint:
        st.caption("The corpus was reindexed after this run. These figures come from the current index.")


def compared(total: float, stored: float | None) -> str:
    """Compare the sum of the terms' scores with the score stored in the run."""
    told = "No BM25 search with this query lists the passage."
    if stored is not None:
        same = abs(total - stored) <= TOLERANCE * max(1.0, abs(stored))
        other = f"The run stored {stored:.2f}, from an earlier index."
        told = "The sum is the score stored in the run." if same else other
    return f"Score of a term = IDF × TF part. {told}"


def analyzer_of(corpus: str) -> Analyzer:
    """Return the corpus' analyzer; for a corpus without an index, whole words without English stop words."""
    return _analyzer(corpus, current_fingerprint(corpus, settings=state.engine().settings))


@st.cache_resource(max_entries=16, show_spinner=False)
def _analyzer(corpus: str, fingerprint: str | None) -> Analyzer:
    info = None
    with suppress(RouteScopeError):  # an index that cannot be read
        info = catalogue.describe(corpus, state.engine().settings).info if fingerprint else None
    return analyzer(info.language) if info is not None else replace(analyzer("english"), language="none")
