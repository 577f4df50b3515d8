"""Passages of the corpus that may be in no list of a run: finding them, and why no list contains them."""

from __future__ import annotations

import streamlit as st

from core.analysis import diagnosis as words
from core.analysis.rank_overlap import contenders
from core.corpus.corpus import Corpus
from core.domain.errors import RouteScopeError
from core.domain.types import Passage, Run
from ui.app import opening, picked, state
from ui.app.markup import cut, md, show, tag
from ui.components import complaint
from ui.why import keeping
from ui.why.diagnoses import DiagnosisView

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


def find(run: Run) -> None:
    """Draw a search by words or id; the chosen result becomes the selected passage."""
    with st.popover("Find a passage", key="why_find_box"):
        st.caption("Find any passage in the corpus, even one that no route found.")
        words = st.text_input("Words or a passage id", key="why_find").strip()
        if not words or not (found := complaint.search(run, words)):
            return
        key = f"why_found:{words}"

        def take() -> None:
            st.session_state[picked.PASSAGE] = st.session_state[key]

        def named(id: str) -> str:
            return md(picked.named(run, id, {}, found))

        st.radio("Best matches", list(found), index=None, format_func=named, key=key, on_change=take)


def expected(run: Run, view: DiagnosisView) -> None:
    """Draw the best hits, each with a button that marks it as the passage that was expected."""
    show(tag("div", "Mark the passage you expected, and each route is judged by it.", css="rs rs-why-head"))
    keeping.last(run)
    hits = contenders(run, depth=view.depth, limit=OFFERED)
    if not hits:
        st.caption("No route found a passage. Search the corpus for the one you expected.")
    for id in hits:
        inside = sum(funnel.flow.final.get(id, view.depth + 1) <= view.depth for funnel in view.funnels)
        with st.container(horizontal=True, vertical_alignment="center"):
            text = tag("span", cut(view.passages[id].text, 140), css="dim")
            head = tag("div", tag("b", view.title(id, 90)), f" {inside} of {len(view.funnels)} routes")
            show(tag("div", head, text, css="rs", dir="auto"))
            keeping.expected(run, view.passages[id], f"expected:{id}", "Expected")


def unfound(corpus: Corpus | None, run: Run, id: str) -> None:
    """Draw why no list of the run contains a passage, as far as the index shows."""
    if corpus is None or id not in (known := corpus.by_ids([id])):
        why = "The current index does not contain this passage, so there is no further explanation."
        show(tag("div", why, css="rs dim"))
        return
    found = words.unfound(words.relation(corpus, run.query.text, known[id]))
    note = tag("span", " Computed from the current index.", css="dim")
    show(tag("div", found, note, css="rs", dir="auto"))
