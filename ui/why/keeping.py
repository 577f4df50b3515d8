"""Judgements that are given on the page: stored at one click, and taken back at the next."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.types import Passage, Run
from core.evaluation.labels import run_labels
from core.evaluation.labels.pool import store_of
from core.evaluation.labels.run_labels import Kept, Report
from core.store import Store
from ui.app import account, state
from ui.app.markup import md
from ui.components import complaint

KEPT = "why_kept"  # the run, what was stored for it last (None: taken back) and what is said about it


def expected(run: Run, passage: Passage, key: str, label: str) -> None:
    """Draw the button that grades a passage as answering the run's question."""
    _button(run, label, key, lambda: run_labels.mark(_store(), run, complaint.who(), passage=passage))


def right(run: Run, route: str, answer: str) -> None:
    """Draw the button that accepts an answer as right."""
    _button(
        run, "Right", f"right:{route}", lambda: run_labels.mark(_store(), run, complaint.who(), answer=answer)
    )


def wrong(run: Run, route: str) -> None:
    """Draw the button that reports an answer as wrong."""
    _button(
        run,
        "Wrong",
        f"wrong:{route}",
        lambda: run_labels.report(
            _store(),
            run_labels.complaint_set(run.corpus),
            Report(run, route, "wrong answer", complaint.who()),
        ),
    )


def last(run: Run) -> None:
    """Draw what was stored last for this run, with its Undo."""
    of, kept, said = st.session_state.get(KEPT) or ("", None, "")
    if of != run.id:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(md(said))
        if kept is not None:
            st.button("Undo", key="why_undo", type="tertiary", on_click=_undo, args=(run.id, kept))


def _store() -> Store:
    return store_of(state.engine())


def _button(run: Run, label: str, key: str, store: Callable[[], Kept]) -> None:
    st.button(label, key=f"why_{key}", on_click=_keep, args=(run.id, store), **account.needs("label"))


def _keep(run: str, store: Callable[[], Kept]) -> None:
    try:
        kept = store()
    except RouteScopeError as error:
        st.session_state[KEPT] = (run, None, f"Not saved: {error}")
    else:
        st.session_state[KEPT] = (run, kept, f"Saved in label set {kept.set}.")


def _undo(run: str, kept: Kept) -> None:
    try:
        run_labels.undo(_store(), kept)
    except RouteScopeError as error:
        st.session_state[KEPT] = (run, None, f"Not undone: {error}")
    else:
        st.session_state[KEPT] = (run, None, f"Taken back from label set {kept.set}.")
