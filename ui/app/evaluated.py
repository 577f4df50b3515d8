"""The evaluation shown by the pages of the section Decide, kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from core.corpus import catalogue
from core.domain.errors import BadInput
from core.evaluation import experiment_store
from core.evaluation.experiment_store import Evaluation
from core.evaluation.first_start import EXAMPLE
from core.evaluation.questions import question_file
from ui.app import address, say, state
from ui.app.choice import choice
from ui.app.markup import md

if TYPE_CHECKING:
    from core.evaluation.background import Entry

CHOSEN = "evaluation"
NEW = "evaluate_new"  # whether Evaluate's form is open
T = TypeVar("T")


def chosen(*, label: str = "Evaluation", noted: bool = True, offer: bool = True) -> Evaluation | None:
    """Draw the choice of a saved evaluation of the sidebar's corpus, and open it.

    Returns None if there is none, with the next step on the page if `offer`. With `noted` the evaluation's
    `note` is below the choice.
    """
    here = str(st.session_state.get(state.CORPUS) or "")
    names, corpora = of_corpus(here), _corpora()
    asked = str(st.query_params.get(CHOSEN) or st.session_state.get(CHOSEN) or "")
    if corpora.get(asked, here) not in (here, *_askable()):
        names.append(asked)  # its corpus is gone, so no choice in the sidebar would list it
    if not names:
        address.keep(CHOSEN, None)
        if offer:
            st.subheader(md(f"No evaluation of {here} yet"), anchor=False)
            st.caption("Evaluate routes on labelled questions of this corpus first.")
            begin("Evaluate routes", "evaluation_first")
        return None
    named = {one: one if corpora[one] in (here, "") else f"{one} · corpus {corpora[one]}" for one in names}
    name = choice(CHOSEN, CHOSEN, label, named, always=True, width=300)
    with say.errors():
        found = reopened(name)
        if noted:
            note(found)
        return found
    return None


def begin(label: str, key: str, routes: Sequence[str] = ()) -> None:
    """Draw the button that opens Evaluate's form, with `routes` chosen if there are any."""
    if st.button(label, key=key, type="primary"):
        st.session_state[NEW] = True
        if routes:
            st.session_state["ev_routes"] = list(routes)
        st.switch_page("evaluate.py")


def of_corpus(corpus: str) -> list[str]:
    """Return the names of a corpus' evaluations, most recently changed first, and damaged ones."""
    return [name for name, of in _corpora().items() if of in (corpus, "")]


def adopt() -> None:
    """Choose the corpus of the evaluation that the address names, if that is new."""
    name = st.query_params.get(CHOSEN, "")
    if address.is_new(CHOSEN) and (corpus := _corpora().get(name)) in _askable():
        st.session_state[state.CORPUS] = corpus


def _askable() -> set[str]:
    return {one.name for one in catalogue.known(state.engine().settings) if one.askable}


def _corpora() -> dict[str, str]:
    """Return the corpus of each evaluation by its name, the one changed last first; "" if unreadable."""
    return {one.name: one.corpus for one in entries()}


def entries() -> list[Entry]:
    """Return the saved evaluations as their folders describe them, the one changed last first."""
    settings = state.engine().settings
    folders = [experiment_store.place(settings, one) for one in experiment_store.names(settings)]
    return [_entry(str(at), experiment_store.stamp(at)) for at in folders]


@st.cache_resource(max_entries=256, show_spinner=False)  # never changed: no copy is needed
def _entry(folder: str, stamp: tuple[float, ...]) -> Entry:  # noqa: ARG001 - part of the cache key
    from core.evaluation import background  # what measures is not needed for a first page

    return background.entry(Path(folder))


def others_of_corpus(evaluation: Evaluation) -> list[str]:
    """Return the names of the corpus' other evaluations, most recently changed first."""
    corpus = evaluation.spec.get("corpus")
    return [one for one, of in _corpora().items() if one != evaluation.name and of == corpus]


def note(evaluation: Evaluation) -> None:
    """Draw what to know before any figure: that a model wrote the questions, or that this is the example."""
    if told := question_file.note(evaluation.labelled.questions):
        st.info(md(told))
    if evaluation.name == EXAMPLE:
        st.caption("An example: made by the first start from the built-in documents. Delete it at any time.")


def reopened(name: str) -> Evaluation:
    """Return an evaluation by name, read again if its folder has changed. Raises BadInput if unreadable."""
    return opened(experiment_store.place(state.engine().settings, name))


def opened(folder: Path) -> Evaluation:
    """Return the evaluation of a folder, or of a chunking's folder in one, as `reopened` does."""
    return _opened(str(folder), experiment_store.stamp(folder))


@st.cache_resource(max_entries=16, show_spinner="Opening the evaluation")
def _opened(folder: str, stamp: tuple[float, ...]) -> Evaluation:  # noqa: ARG001 - part of the cache key
    return experiment_store.opened(Path(folder))


def to_sessions(evaluation: Evaluation, question: str, run: str = "") -> str:
    """Save a question's run, or another run of it, with the other runs, and return its id.

    Raises BadInput if the evaluation saved no run of the question.
    """
    store, id = state.store(), run or evaluation.run_id(question)
    try:
        store.load(id)
    except BadInput:
        store.save(evaluation.stored(id, question))
        store.flush()
    return id


def once(evaluation: Evaluation, *key: Any, compute: Callable[[], T]) -> T:
    """Return `compute()`, remembered under `key` until the folder of the evaluation changes."""
    found: T = remember((str(evaluation.folder), experiment_store.stamp(evaluation.folder), *key), compute)
    return found


@st.cache_resource(max_entries=128, show_spinner="Computing")
def remember(key: tuple[Any, ...], _compute: Callable[[], Any]) -> Any:  # noqa: ARG001 - the cache key
    """Return `_compute()`, remembered under `key`."""
    return _compute()


def open_run(
    evaluation: Evaluation | None,
    question: str,
    key: str,
    *,
    label: str = "Open in Why",
    page: str = "why.py",
    run: str = "",
    **parameters: str,
) -> None:
    """Draw the button that copies a question's run into Sessions and opens it on a page."""
    if evaluation is None or not (run or evaluation.run_id(question)):
        st.caption("The evaluation saved no run of this question, so it cannot be opened.")
    elif st.button(md(label), key=key):
        with say.errors():
            id = to_sessions(evaluation, question, run)
            st.switch_page(page, query_params={"run": id, **parameters})
