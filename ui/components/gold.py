"""The known facts of a run's question, shown if it is a labelled one of its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from core.corpus import catalogue
from core.corpus.samples import labelled_files
from core.corpus.source import base_of
from core.domain.errors import RouteScopeError
from core.domain.types import Run
from core.evaluation.gold import Gold, gold
from core.evaluation.labels.desk import sets
from core.evaluation.labels.desk import version as version_of
from ui.app import opening, state


def gold_of(run: Run) -> Gold:
    """Return what is known of a run's question, by the current index; an empty Gold if nothing is."""
    engine = state.engine()
    try:
        now = catalogue.describe(run.corpus, engine.settings)
        if now.state not in ("ready", "stale") or now.fingerprint is None:
            return Gold()
        opening.wait_for(run.corpus)
        store = state.store()
        own = [one.name for one in sets(store) if base_of(one.corpus) == base_of(run.corpus)]
        versions = [(name, *version_of(store, name)) for name in own]
        asked = run.query.text, [(turn.role, turn.text) for turn in run.query.history]
        return _gold(run, (str(engine.settings.home), run.corpus, now.fingerprint, asked, versions))
    except RouteScopeError:
        return Gold()  # a corpus or a store that cannot be read: Corpus and Sessions report it


def gold_grades(run: Run) -> Mapping[str, int]:
    """Return grades (0 to 3) by passage id for a labelled question, else {}."""
    return gold_of(run).grades


@st.cache_resource(max_entries=64, ttl=60, show_spinner=False)
def _gold(_run: Run, key: tuple[Any, ...]) -> Gold:  # noqa: ARG001 - the key of the cache
    return gold(state.engine(), _run)


@st.cache_data(max_entries=8, show_spinner=False)
def questions_of(corpus: str, fingerprint: str) -> dict[str, list[tuple[str, str, int]]]:  # noqa: ARG001 - part of the cache key
    """Return the labelled questions that each passage answers, as (id, text, grade), best grade first."""
    from core.evaluation.dataset import written
    from core.evaluation.labels_file import place

    files = labelled_files(corpus)
    try:
        known = written(files, name=corpus) if files else None
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
