"""Gold grades, shown if the question is a labelled one of its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.corpus import catalogue
from core.corpus.samples import labelled_files
from core.corpus.variants import base_of
from core.domain.errors import RouteScopeError
from core.domain.types import Run
from core.evaluation.labels.desk import sets
from core.evaluation.labels.desk import version as version_of
from core.evaluation.reading_losses import LossKind, fates, losses
from ui.app import opening, state

if TYPE_CHECKING:
    from core.evaluation.dataset import Found, Written


def gold_grades(run: Run) -> Mapping[str, int]:
    """Return grades (0 to 3) by passage id for a labelled question, else {}.

    Passages are those of the current index. Labels made on the page Label override labels that come with the
    corpus.
    """
    try:
        now = catalogue.describe(run.corpus, state.engine().settings)
    except RouteScopeError:
        return {}  # a corpus that is not known here: its runs are shown without labels
    if now.state not in ("ready", "stale") or now.fingerprint is None:
        return {}
    return {**_with_corpus(run, now.fingerprint), **_by_people(run, now.fingerprint)}


def _with_corpus(run: Run, fingerprint: str) -> Mapping[str, int]:
    asked = (run.query.text, run.query.history)
    try:
        written = _written(run.corpus)
        if written is None:
            found = _read(run.corpus, fingerprint)
            if found is None:
                return {}
            opening.wait_for(run.corpus)
            return _of_folder(found, run.corpus, fingerprint).get(asked, {})
    except RouteScopeError:
        return {}  # its questions cannot be read: the page Evaluate reports it
    question = next((q for q in written.questions if (q.query.text, q.query.history) == asked), None)
    if question is None:
        return {}
    opening.wait_for(run.corpus)
    return _placed(run.corpus, fingerprint, question.id)


def _by_people(run: Run, fingerprint: str) -> Mapping[str, int]:
    store = state.engine().store
    if store is None:
        return {}
    found: dict[str, int] = {}
    try:
        own = [one.name for one in sets(store) if base_of(one.corpus) == base_of(run.corpus)]
    except RouteScopeError:
        return found  # the store cannot be read: the page Sessions reports it
    if own:
        opening.wait_for(run.corpus)
    for name in own:
        grades = _of_people(name, run.corpus, (fingerprint, *version_of(store, name)))
        found |= grades.get((run.query.text, run.query.history), {})
    return found


@st.cache_resource(max_entries=8, ttl=60, show_spinner=False)
def _read(corpus: str, fingerprint: str) -> Found | None:  # noqa: ARG001 - part of the cache key
    """Return the questions and judgements in a corpus' BEIR folder, or None if it has none."""
    from core.evaluation.tuning.batch_run import questions

    try:
        return questions(state.engine(), corpus)
    except RouteScopeError:
        return None  # none lie with the corpus, or they cannot be read: the page Evaluate reports it


@st.cache_resource(max_entries=8, ttl=60, show_spinner=False)
def _of_folder(
    _found: Found,
    corpus: str,
    fingerprint: str,  # noqa: ARG001 - part of the cache key
) -> Mapping[tuple[Any, ...], Mapping[str, int]]:
    """Return grades by question, or {} if they do not fit the current corpus."""
    from core.evaluation.sets import tie

    try:
        return tie(_found, state.engine().corpus(corpus))[0].grades()
    except RouteScopeError:
        return {}


@st.cache_resource(max_entries=16, show_spinner=False)
def _of_people(
    name: str,
    corpus: str,
    version: tuple[Any, ...],  # noqa: ARG001 - part of the cache key
) -> Mapping[tuple[Any, ...], Mapping[str, int]]:
    """Return grades by question of a set labelled by people.

    An unusable set is cached as {}, since each rerun of a page would read it again.
    """
    from core.evaluation.labels.final import labelled_set

    engine = state.engine()
    try:
        return labelled_set(engine.store, name, engine.corpus(corpus))[0].grades() if engine.store else {}
    except RouteScopeError:
        return {}  # not graded yet, or its words are gone: the page Label reports it


def gold_quotes(run: Run, least: int = 0) -> Mapping[str, tuple[str, ...]]:
    """Return the labelled text by document for a labelled question, from grade `least` up; else {}."""
    from core.evaluation.gold import quoted

    try:
        written = _written(run.corpus)
    except RouteScopeError:
        return {}
    asked = (run.query.text, run.query.history)
    known = written.questions if written is not None else ()
    question = next((q for q in known if (q.query.text, q.query.history) == asked), None)
    return quoted(written, question.id, least) if written is not None and question is not None else {}


def gold_fates(run: Run) -> Mapping[str, tuple[LossKind, str]]:
    """Return by id the labels lost before indexing, as `core.evaluation.reading_losses` finds them."""
    try:
        written = _written(run.corpus)
        asked = (run.query.text, run.query.history)
        known = written.questions if written is not None else ()
        question = next((one for one in known if (one.query.text, one.query.history) == asked), None)
        if written is None or question is None:
            return {}
        return fates(list(losses(written, state.engine().corpus(run.corpus), question.id)))
    except RouteScopeError:
        return {}  # its questions cannot be read: the page Evaluate reports it


def labelled_mode(run: Run) -> str | None:
    """Return the failure mode of a labelled question as its author set it, or None."""
    try:
        written = _written(run.corpus)
    except RouteScopeError:
        return None
    asked = (run.query.text, run.query.history)
    known = written.questions if written is not None else ()
    return next((one.mode for one in known if (one.query.text, one.query.history) == asked), None)


@st.cache_resource(max_entries=8, show_spinner=False)
def _written(corpus: str) -> Written | None:
    from core.evaluation.dataset import written

    files = labelled_files(corpus)
    return written(files, name=corpus) if files else None


@st.cache_data(max_entries=500, show_spinner=False)
def _placed(corpus: str, fingerprint: str | None, question: str) -> dict[str, int]:  # noqa: ARG001 - part of the cache key
    from core.evaluation.labels_file import place

    known = _written(corpus)
    if known is None or not known.evidence.get(question):
        return {}
    one = replace(known, questions=(), evidence={question: known.evidence[question]})
    try:
        return dict(place(one, state.engine().corpus(corpus)).qrels.get(question, {}))
    except RouteScopeError:
        return {}  # the documents have changed since they were labelled: the run is shown without labels


@st.cache_data(max_entries=8, show_spinner=False)
def questions_of(corpus: str, fingerprint: str) -> dict[str, list[tuple[str, str, int]]]:  # noqa: ARG001 - part of the cache key
    """Return the labelled questions that each passage answers, as (id, text, grade), best grade first."""
    from core.evaluation.labels_file import place

    try:
        known = _written(corpus)
    except RouteScopeError:
        return {}
    if known is None:
        return {}
    found: dict[str, list[tuple[str, str, int]]] = {}
    for question in known.questions:
        one = replace(known, questions=(), evidence={question.id: known.evidence.get(question.id, ())})
        try:
            grades = place(one, state.engine().corpus(corpus)).qrels.get(question.id, {})
        except RouteScopeError:
            continue  # its documents have changed since it was labelled
        for id, grade in grades.items():
            found.setdefault(id, []).append((question.id, question.query.text, grade))
    return {id: sorted(those, key=lambda one: (-one[2], one[0])) for id, those in found.items()}
