"""“Wrong…”: turns a wrong answer or ranking into a question that later releases must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from core.domain import people
from core.domain.errors import BadInput, RouteScopeError
from core.domain.relevance import relevant
from core.domain.types import Passage, Run
from core.evaluation.dataset import FAILURES
from core.evaluation.gold import DEPTH, suggested
from core.evaluation.labels import run_labels
from core.evaluation.labels.run_labels import Kept, Report
from ui.app import opening, outcome, picked, say, state
from ui.app.help_mark import term
from ui.app.outcome import Outcome

WHO = "label_annotator"  # the same name that labels are saved under
ME = "me"
MAX_RESULTS = 10  # passages that a search offers


def popover(run: Run, key: str, gold: Mapping[str, int], *, wanted: Passage | None = None) -> None:
    """Draw the button and its form, which can be saved unchanged.

    `wanted` is offered as the passage that should have been found; without it, the best one labelled in
    `gold` is.
    """
    shown = {one.route: [hit.passage.id for hit in one.hits[:DEPTH]] for one in run.results}
    routes = list(shown)
    if not routes:
        return
    best = next(iter(relevant(gold)), None) if any(grade > 0 for grade in gold.values()) else None
    wanted = wanted or (run.passages.get(best) if best else None)
    if wanted is not None:  # those first that do not show it
        id = wanted.id
        routes.sort(key=lambda name: id in shown[name])
    with st.popover(
        "Wrong…", key=f"{key}_box", icon=":material/flag:", width="content", on_change="rerun"
    ) as box:
        if box.open:
            _form(run, key, routes, wanted, gold)
    outcome.draw(f"{key}:{run.id}", f"{key}_undo")


def _form(run: Run, key: str, routes: Sequence[str], wanted: Passage | None, gold: Mapping[str, int]) -> None:
    st.caption("Becomes a question that later releases must pass.", help=term("regression set"))
    titles = {result.route: result.title for result in run.results}
    of, first = f"{key}:{run.id}", st.container(horizontal=True)
    named = titles.__getitem__
    route = first.selectbox("What is wrong", routes, format_func=named, key=f"{of}:route", width=190)
    passage = _passage(run, of, wanted, gold)
    usual, kinds = suggested(run, route, passage.id if passage else None), list(FAILURES)
    given: dict[str, Any] = {"key": f"{of}:failure:{usual}", "format_func": FAILURES.__getitem__}
    failure = first.selectbox("Kind of failure", kinds, kinds.index(usual), width=190, **given)
    row, last = st.container(horizontal=True), st.container(horizontal=True)
    box: dict[str, Any] = {"width": 190, "placeholder": "optional"}
    answer = row.text_input("Right answer", key=f"{of}:answer", max_chars=run_labels.MAX_ANSWER, **box)
    note = row.text_input("Note", key=f"{of}:note", max_chars=2000, **box)
    me = people.current().account
    reporter = me or last.text_input("Reported by", who(), key=f"{of}:who", max_chars=64, width=140)
    usual_set = run_labels.complaint_set(run.corpus)
    name = last.text_input("Label set", usual_set, key=f"{of}:set", max_chars=64, width=230)
    if st.button("Save as a test", key=f"{key}_save", type="primary"):
        report = Report(run, route, failure, reporter.strip() or ME, passage, answer, note)
        outcome.act(of, partial(_save, name, report))


def _passage(run: Run, of: str, wanted: Passage | None, gold: Mapping[str, int]) -> Passage | None:
    """Draw the choice of the passage that should have been found: one of the run's, or one searched for."""
    hint = "words, a quote, a document or an id"
    words = st.text_input("Find the passage in the corpus", key=f"{of}:find", placeholder=hint).strip()
    found = search(run, words) if words else {}
    if wanted is not None:
        found.setdefault(wanted.id, wanted)
    ids = list(dict.fromkeys([*found, *picked.offered(run, gold)]))
    if not ids:
        return None
    begin = 0 if found else None
    box: dict[str, Any] = {"key": f"{of}:passage:{begin}:{words}", "placeholder": "not known"}
    box["format_func"] = lambda one: picked.named(run, one, gold, found)
    id = st.selectbox("Passage that should have been there", ids, begin, **box)
    return (found.get(id) or run.passages.get(id)) if id else None


def search(run: Run, words: str) -> dict[str, Passage]:
    """Return passages by id, by document, or by BM25 with exact matches of the words first."""
    opening.wait_for(run.corpus)
    try:
        corpus = state.engine().corpus(run.corpus)
        passages = list(corpus.by_ids([words]).values())
        with suppress(BadInput):  # words, and not the id of a document
            passages = passages or corpus.document(words)[1]
        if not passages:
            hits = [hit.passage for hit in corpus.search_sparse(words, MAX_RESULTS)]
            passages = sorted(hits, key=lambda one: words not in one.text)
    except RouteScopeError as error:
        say.caption(f"Corpus {run.corpus} cannot be searched: {error}")
        return {}
    if not passages:
        st.caption("No passage contains any of these words.")
    return {one.id: one for one in passages}


def who() -> str:
    """Return the name that labels are saved under: the account if there is a login."""
    return people.current().account or " ".join(str(st.session_state.get(WHO) or "").split()) or ME


def _save(name: str, report: Report) -> Outcome:
    kept = run_labels.report(state.store(), name, report)
    if not people.current().account:
        st.session_state[WHO] = report.who
    return saved(kept, kept.in_words())


def saved(kept: Kept, text: str) -> Outcome:
    """Return the outcome of storing a judgement of a run: `text`, its Undo and its label set."""

    def undo() -> Outcome:
        run_labels.undo(state.store(), kept)
        return Outcome(f"Taken back from {kept.set}.")

    return Outcome(text, None if kept.again else undo, ("label.py", "Open on Label", {"set": kept.set}))
