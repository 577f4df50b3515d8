"""The vectors of a run's texts and passages: from the index, else made now and cached by the process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.embedding_map import Plane, Point, embed, plane
from core.backends.base import Matrix, Vector
from core.corpus.corpus import Corpus
from core.domain.errors import RouteScopeError, Unavailable
from core.domain.types import Run
from ui.app import opening, say, state
from ui.app.markup import md


@dataclass(frozen=True, slots=True)
class Space:
    """Points with their unit vectors, shape (n, dim), in the same order.

    `note` is the origin of the passages' vectors if it is not the index.
    """

    points: tuple[Point, ...]
    vectors: Matrix
    embedder: str
    note: str


def space(run: Run, points: list[Point]) -> Space | None:
    """Return the vectors of `points`, or None, with the reason on the page, without an embedder.

    Vectors computed before a Stop are kept.
    """
    engine = state.engine()
    corpus, note = _corpus(run)
    recorded = run.settings.get("embedder")
    name = corpus.info.embedder if corpus else str(recorded or engine.settings.embedder)
    known = _kept(run.id, name, corpus.fingerprint if corpus else "")
    try:
        if any((one.kind, one.key) not in known for one in points):
            with st.spinner(f"Embedding {len(points)} texts and passages by {md(name)}", show_time=True):
                for _ in embed(run, points, engine.embedder(name), corpus, known):
                    pass
    except Unavailable as error:
        say.warning(f"Similarities need the embedder {name}: {error}")
        return None
    return Space(tuple(points), np.stack([known[one.kind, one.key] for one in points]), name, note)


def _corpus(run: Run) -> tuple[Corpus | None, str]:
    """Return the corpus if it is unchanged since the run, and a note if it is not."""
    opening.wait_for(run.corpus)
    try:
        corpus = state.engine().corpus(run.corpus)
    except RouteScopeError:
        return None, f"Corpus {run.corpus} is not indexed here, so the passages were embedded from the run."
    if corpus.fingerprint != run.fingerprint:
        note = f"Corpus {run.corpus} has changed since the run, so the passages were embedded from the run."
        return None, note
    return corpus, ""


@st.cache_resource(max_entries=50, show_spinner=False)
def _kept(run_id: str, embedder: str, fingerprint: str) -> dict[tuple[str, str], Vector]:  # noqa: ARG001 - the cache's key
    """Return the cache of vectors for a run and an embedder; its vectors never change."""
    return {}


@st.cache_data(max_entries=50, show_spinner="Placing the points")
def placed(key: tuple[object, ...], _vectors: Matrix) -> Plane:  # noqa: ARG001 - the cache's key
    """Return the points on a plane, computed once for a run."""
    return plane(_vectors)
