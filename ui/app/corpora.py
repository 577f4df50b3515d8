"""The corpora: choosing one, building it, and the builds in progress."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from core.corpus import builds, catalogue
from core.corpus.chunk import Chunking
from core.corpus.types import Reading
from core.domain.errors import RouteScopeError
from core.evaluation import first_start
from ui.app import state, workers
from ui.app.markup import md

BY = "corpus_workers"  # the choice of who embeds
WANTED = "corpus_wanted"  # a corpus that is being built, to be chosen when it is there
_OTHER = re.compile(r"[^a-z0-9]+")


def choose() -> None:
    """Draw the choice of the corpus for all pages, with its state."""
    known = {item.name: item for item in catalogue.known(state.engine().settings) if item.askable}
    if (wanted := st.session_state.get(WANTED)) in known:
        st.session_state[state.CORPUS] = wanted
        del st.session_state[WANTED]
    if st.session_state.get(state.CORPUS) not in known:
        st.session_state[state.CORPUS] = next(iter(known))
    name = st.selectbox("Corpus", list(known), key=state.CORPUS, persist_state="session")
    item = known[name]
    cut = f" Cut: {item.info.chunking.label()}." if item.chunking_of and item.info else ""
    own = item.title.startswith(str(state.engine().settings.home))
    st.caption(md(f"{'Uploaded files' if own else item.title}.{cut} {size(item)}"))
    if item.state in ("stale", "damaged"):
        st.warning(md(f"{item.reason}."))
        if st.button("Rebuild", key="rebuild"):
            again(name)


def size(item: catalogue.Known) -> str:
    """Describe how much the corpus holds and how it is searched, or its state if it has no index."""
    if item.info is None:
        return item.state.capitalize()
    info = item.info
    exact = info.vector_index == "flat"
    search = (
        "exact vector search" if exact else f"approximate vector search (HNSW), recall@10 {info.recall:.3f}"
    )
    return f"{info.documents:,} documents, {info.passages:,} passages, {search}"


def suggested(path: str) -> str:
    """Return a corpus name made from the last part of a path."""
    return _OTHER.sub("-", Path(path.strip()).name.lower()).strip("-")


def again(name: str) -> None:
    """Start to rebuild a known corpus, or draw why it cannot be built."""
    try:
        begin(name, name)
    except RouteScopeError as error:
        st.error(md(str(error)))


def begin(
    name: str, source: str | Path, chunking: Chunking | None = None, reading: Reading | None = None
) -> str:
    """Start a build and return the corpus' name.

    Chunking and reading stay as before unless given. Raises BadInput for an invalid name or path.
    """
    settings = state.engine().settings
    origin = catalogue.source(
        source,
        settings=settings,
        name=name if isinstance(source, Path) or name != source else None,
        chunking=chunking,
        reading=reading,
    )
    builds.start(origin.name, origin, settings, workers.chosen(BY))
    return origin.name


def failed(build: builds.Build, what: str) -> None:
    """Show why a build ended early; if only its cost has to be confirmed, with the button for that."""
    if not build.error:
        return
    if build.confirm is None:
        st.error(md(f"{what}: {build.error}"))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(md(f"{what}: {build.error}"), width="stretch")
        if st.button("Embed anyway", key=f"confirm:{build.name}"):
            try:
                build.confirm()
            except RouteScopeError as error:
                st.error(md(str(error)))
            else:
                st.rerun()


def under_way(corpus: str) -> bool:
    """Return whether a corpus is being built."""
    return (build := builds.get(corpus)) is not None and not build.done


def _made_when_wanted(corpus: str) -> bool:
    """Return whether this is a built-in corpus that the first start left until somebody needs it."""
    settings = state.engine().settings
    if settings.first_start == "off" or corpus not in catalogue.BUILT_IN:
        return False
    if corpus in catalogue.SHIPPED and not all(job.done for job in first_start.known(settings.home)):
        return False  # its turn comes
    return catalogue.describe(corpus, settings).state == "not built"


def notice(corpus: str) -> None:
    """Draw why a corpus cannot be searched now, with a button that builds it; nothing if it can."""
    build = builds.get(corpus)
    if build is None and _made_when_wanted(corpus):
        again(corpus)
        st.rerun()
    if under_way(corpus):
        st.info(md(f"Corpus {corpus} is being built. Progress and Stop are in the sidebar."))
        return
    if build is not None:
        failed(build, f"Building corpus {corpus} failed")
    item = catalogue.describe(corpus, state.engine().settings)
    if item.state in ("ready", "stale"):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        why = f" {item.reason}." if item.state == "damaged" else ""
        st.warning(
            md(f"Corpus {corpus} is {item.state}, so it cannot be searched yet.{why}"), width="stretch"
        )
        if st.button("Build it now", key="build_corpus", type="primary"):
            again(corpus)
            if under_way(corpus):
                st.rerun()
