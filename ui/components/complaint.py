"""“Wrong…”: turns a wrong answer or ranking into a question that later releases must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.corpus.corpus import Corpus
from core.domain import people
from core.domain.errors import BadInput, RouteScopeError
from core.domain.relevance import relevant
from core.domain.types import Passage, RouteResult, Run
from core.evaluation.complaint import DEPTH, FAILURES, suggested
from core.evaluation.labels import run_labels
from core.evaluation.labels.pool import store_of
from core.evaluation.labels.run_labels import Kept, Report
from ui.app import opening, picked, state
from ui.app.help_mark import term
from ui.app.markup import cut, md

WHO = "label_annotator"  # the same name that labels are saved under
ME = "me"
OUTCOME = "complaint_said"  # by run: (good, what became of the last report, to be undone)
MAX_RESULTS = 10  # passages that a search offers


def popover(
    run: Run,
    key: str,
    gold: Mapping[str, int],
    *,
    route: str | None = None,
    wanted: Passage | None = None,
    label: str = "Wrong…",
) -> None:
    """Draw the button and its form, which can be saved unchanged.

    `route` is the wrong result's route, else one is chosen. `wanted` is offered as the passage that should
    have been found; without it, the best one labelled in `gold` is.
    """
    routes = [result.route for result in run.results]
    if not routes or state.engine().store is None:
        return
    best = next(iter(relevant(gold)), None) if any(grade > 0 for grade in gold.values()) else None
    wanted = wanted or (run.passages.get(best) if best else None)
    if wanted is not None:  # those first that do not show it
        id = wanted.id
        routes.sort(key=lambda name: _shows(run, name, id))
    with st.popover(label, key=f"{key}_box", icon=":material/flag:", width="content"):
        _form(run, key, [route] if route in routes else routes, wanted, gold)
    _said(run, key)


def _shows(run: Run, route: str, passage: str) -> bool:
    hits = next(result.hits for result in run.results if result.route == route)
    return any(hit.passage.id == passage for hit in hits[:DEPTH])


def _form(run: Run, key: str, routes: Sequence[str], wanted: Passage | None, gold: Mapping[str, int]) -> None:
    st.caption("Becomes a question that later releases must pass.", help=term("regression set"))
    titles = {result.route: result.title for result in run.results}
    of = f"{key}:{run.id}"
    first = st.container(horizontal=True)
    with first:
        route = st.selectbox(
            "What is wrong", routes, format_func=titles.__getitem__, key=f"{of}:route", width=190
        )
    passage = _passage(run, of, wanted, gold)
    usual = suggested(run, route, passage.id if passage else None)
    with first:
        failure = st.selectbox(
            "Kind of failure",
            list(FAILURES),
            index=list(FAILURES).index(usual),
            width=190,
            key=f"{of}:failure:{usual}",
            format_func=FAILURES.__getitem__,
        )
    with st.container(horizontal=True):
        answer = st.text_input(
            "Right answer",
            key=f"{of}:answer",
            max_chars=run_labels.MAX_ANSWER,
            width=190,
            placeholder="optional",
        )
        note = st.text_input("Note", key=f"{of}:note", max_chars=2000, placeholder="optional", width=190)
    with st.container(horizontal=True):
        reporter = people.current().account or st.text_input(
            "Reported by", who(), key=f"{of}:who", max_chars=64, width=140
        )
        name = st.text_input(
            "Label set", run_labels.complaint_set(run.corpus), key=f"{of}:set", max_chars=64, width=230
        )
    if st.button("Save as a test", key=f"{key}_save", type="primary"):
        _save(key, name, Report(run, route, failure, reporter.strip() or ME, passage, answer, note))


def _passage(run: Run, of: str, wanted: Passage | None, gold: Mapping[str, int]) -> Passage | None:
    """Draw the choice of the passage that should have been found: one of the run's, or one searched for."""
    found: dict[str, Passage] = {}
    words = st.text_input(
        "Find the passage in the corpus", key=f"{of}:find", placeholder="words, a quote, a document or an id"
    ).strip()
    if words:
        found = _search(run, words)
    if wanted is not None:
        found.setdefault(wanted.id, wanted)
    ids = [*found, *(id for id in picked.offered(run, gold) if id not in found)]
    if not ids:
        return None
    begin = 0 if found else None
    id = st.selectbox(
        "Passage that should have been there",
        ids,
        index=begin,
        key=f"{of}:passage:{begin}:{words}",
        format_func=lambda one: picked.named(run, one, gold, found),
        placeholder="not known",
    )
    return (found.get(id) or run.passages.get(id)) if id else None


def _search(run: Run, words: str) -> dict[str, Passage]:
    """Return passages by id, by document, or by BM25 with exact matches of the words first."""
    opening.wait_for(run.corpus)
    try:
        corpus = state.engine().corpus(run.corpus)
        passages = list(corpus.by_ids([words]).values()) or _of_document(corpus, words)
        if not passages:
            hits = [hit.passage for hit in corpus.search_sparse(words, MAX_RESULTS)]
            passages = sorted(hits, key=lambda one: words not in one.text)
    except RouteScopeError as error:
        st.caption(md(f"Corpus {run.corpus} cannot be searched: {error}"))
        return {}
    if not passages:
        st.caption("No passage contains any of these words.")
    return {one.id: one for one in passages}


def _of_document(corpus: Corpus, id: str) -> list[Passage]:
    try:
        return corpus.document(id)[1]
    except BadInput:
        return []  # words, and not the id of a document


def who() -> str:
    """Return the name that labels are saved under: the account if there is a login."""
    return people.current().account or " ".join(str(st.session_state.get(WHO) or "").split()) or ME


def _save(key: str, name: str, said: Report) -> None:
    """Save the report; if that fails, keep what was typed and show the reason."""
    try:
        kept = run_labels.report(store_of(state.engine()), name, said)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = (key, said.run.id, False, f"Not saved: {error}", None)
        return
    if not people.current().account:
        st.session_state[WHO] = said.who
    st.session_state[OUTCOME] = (key, said.run.id, True, kept.in_words(), kept)


def _undo(key: str, run: str, kept: Kept) -> None:
    try:
        run_labels.undo(store_of(state.engine()), kept)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = (key, run, False, f"Not undone: {error}", None)
        return
    st.session_state[OUTCOME] = (key, run, True, f"Taken back from {kept.set}.", None)


def _said(run: Run, key: str) -> None:
    """Draw the outcome of the last report next to its button."""
    of, of_run, good, text, kept = st.session_state.get(OUTCOME) or ("", "", True, "", None)
    if (of, of_run) != (key, run.id):
        return
    if not good:
        st.error(md(text))
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_said"):
        st.caption(md(text))
        if kept is not None and not kept.again:
            st.button("Undo", key=f"{key}_undo", type="tertiary", on_click=_undo, args=(key, run.id, kept))
        if kept is not None:
            st.page_link("label.py", label="Open on Label", query_params={"set": kept.set})


def of_result(run: Run, result: RouteResult, key: str, gold: Mapping[str, int]) -> None:
    """Draw `popover` for one route's result."""
    popover(run, key, gold, route=result.route, label=f"Wrong: {cut(result.title, 30)}")
