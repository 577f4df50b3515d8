"""Passages of the corpus that may be in no list of a run: finding them, and why no list contains them."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis import diagnosis_text as words
from core.analysis.rank_overlap import contenders
from core.corpus.corpus import Corpus
from core.corpus.markdown import name_of
from core.domain.errors import RouteScopeError
from core.domain.types import Passage, Run
from ui.app import opening, state
from ui.app.markup import cut, md, show, tag
from ui.app.picked import PASSAGE
from ui.why import keeping
from ui.why.diagnoses import DiagnosisView

WORDS = "why_find"
MAX_RESULTS = 10  # passages that are offered
OFFERED = 8  # hits to mark


def corpus_of(run: Run) -> Corpus | None:
    """Return the corpus as it is indexed now, or None without an index."""
    opening.wait_for(run.corpus)
    try:
        return state.engine().corpus(run.corpus)
    except RouteScopeError:
        return None


def beyond(corpus: Corpus | None, run: Run, ids: list[str]) -> dict[str, Passage]:
    """Return those of `ids` that the run does not contain, from the corpus."""
    missing = [id for id in ids if id and id not in run.passages]
    return corpus.by_ids(missing) if corpus is not None and missing else {}


def find(corpus: Corpus | None, run: Run) -> None:
    """Draw a search by words or id; the chosen result becomes the selected passage."""
    with st.popover("Find a passage", key="why_find_box"):
        if corpus is None:
            st.caption(md(f"Corpus {run.corpus} is not indexed here, so you cannot search it."))
            return
        st.caption("Find any passage in the corpus, even one that no route found.")
        words = st.text_input("Words or a passage id", key=WORDS).strip()
        if not words:
            return
        known = corpus.by_ids([words])
        found = [*known.values()] or [hit.passage for hit in corpus.search_sparse(words, MAX_RESULTS)]
        if not found:
            st.caption("No passage contains any of these words.")
            return
        titles = {one.id: f"{cut(name_of(corpus, one), 90)}" for one in found}
        st.radio(
            "Top BM25 matches" if not known else "Passage with this id",
            list(titles),
            index=None,
            format_func=lambda id: md(titles[id]),
            key=f"why_found:{words}",
            on_change=lambda: _take(f"why_found:{words}"),
        )


def expected(run: Run, view: DiagnosisView) -> None:
    """Draw the best hits, each with a button that marks it as the passage that was expected."""
    show(tag("div", "Mark the passage you expected, and each route is judged by it.", css="rs rs-why-head"))
    keeping.last(run)
    hits = contenders(run, depth=view.depth, limit=OFFERED)
    if not hits:
        st.caption("No route found a passage. Search the corpus for the one you expected.")
    for id in hits:
        inside = sum(funnel.flow.final.get(id, view.depth + 1) <= view.depth for funnel in view.funnels)
        where = f"{inside} of {len(view.funnels)} routes"
        with st.container(horizontal=True, vertical_alignment="center"):
            text = tag("span", cut(view.passages[id].text, 140), css="dim")
            head = tag("b", view.title(id, 90))
            show(tag("div", tag("div", head, f" {where}"), text, css="rs", dir="auto"))
            keeping.expected(run, view.passages[id], f"expected:{id}", "Expected")


def _take(key: str) -> None:
    st.session_state[PASSAGE] = st.session_state[key]


def unfound(corpus: Corpus | None, run: Run, id: str) -> Markup:
    """Describe why no list of the run contains a passage, as far as the index shows."""
    if corpus is None or id not in corpus.by_ids([id]):
        return tag(
            "div",
            "The current index does not contain this passage, so there is no further explanation.",
            css="rs dim",
        )
    found = words.unfound(words.relation(corpus, run.query.text, corpus.by_ids([id])[id]))
    return tag(
        "div", found, tag("span", " Computed from the current index.", css="dim"), css="rs", dir="auto"
    )
