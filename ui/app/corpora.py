"""The corpora: choosing one, building it, and the builds in progress."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import streamlit as st

from core.corpus import builds, catalogue
from core.corpus.chunk import Chunking
from core.corpus.types import Reading
from core.evaluation import first_start
from ui.app import say, state, workers
from ui.app.routes import on_page

BY = "corpus_workers"  # the choice of who embeds
WANTED = "corpus_wanted"  # a corpus that is being built, to be chosen when it is there
_OTHER = re.compile(r"[^a-z0-9]+")


def choose() -> None:
    """Draw the choice of the corpus for all pages, with its state."""
    known = {item.name: item for item in catalogue.known(state.engine().settings) if item.askable}
    if (wanted := st.session_state.get(WANTED)) in known:
        st.session_state[state.CORPUS] = wanted
        del st.session_state[WANTED]
    if st.session_state.get(state.CORPUS) not in known:  # the first that is built
        built = [name for name, item in known.items() if item.state != "not built"]
        st.session_state[state.CORPUS] = next(iter(built or known))
    name = st.selectbox("Corpus", list(known), key=state.CORPUS, persist_state="session")
    item = known[name]
    cut = f" Cut: {item.info.chunking.label()}." if item.chunking_of and item.info else ""
    own = item.title.startswith(str(state.engine().settings.home))
    say.caption(f"{'Uploaded files' if own else item.title}.{cut} {size(item)}")
    if item.state in ("stale", "damaged"):
        say.warning(f"{on_page(item.reason)}.")
        if st.button("Rebuild", key="rebuild"):
            again(name)


def size(item: catalogue.Known) -> str:
    """Describe how much the corpus holds and how it is searched, or its state if it has no index."""
    if item.info is None:
        return item.state.capitalize()
    info = item.info
    hnsw = f"approximate vector search (HNSW), recall@10 {info.recall:.3f}"
    search = "exact vector search" if info.vector_index == "flat" else hnsw
    return f"{info.documents:,} documents, {info.passages:,} passages, {search}"


def suggested(path: str) -> str:
    """Return a corpus name made from the last part of a path."""
    return _OTHER.sub("-", Path(path.strip()).name.lower()).strip("-")


def again(name: str) -> None:
    """Start to rebuild a known corpus, or draw why it cannot be built."""
    with say.errors():
        begin(name, name)


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
        say.error(f"{what}: {build.error}")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        say.warning(f"{what}: {build.error}")
        if st.button("Embed anyway", key=f"confirm:{build.name}"):
            with say.errors():
                build.confirm()
                st.rerun()


def under_way(corpus: str) -> bool:
    """Return whether a corpus is being built."""
    return (build := builds.get(corpus)) is not None and not build.done


def background(
    called: str, doing: str, label: str, key: str, work: builds.Work, confirmed: builds.Work | None = None
) -> builds.Build | None:
    """Draw the button that starts `work` in the background, and how it goes; return it once it is done.
    `confirmed` is the same work whatever it costs, for the button that follows NotConfirmed.
    """
    build = builds.get(called)
    busy = build is not None and not build.done
    if st.button(label, key=key, type="primary", disabled=busy):
        again = partial(builds.start_work, called, confirmed) if confirmed else None
        builds.start_work(called, work, confirm=again)
        st.rerun()
    if build is None or build.cancelled:
        return None
    if busy:
        say.info(f"{doing}. Progress and Stop are in the sidebar.")
    else:
        failed(build, f"{label} failed")
    return build if build.done and not build.error else None


def notice(corpus: str) -> None:
    """Draw why a corpus cannot be searched now, with a button that builds it; nothing if it can."""
    build, settings = builds.get(corpus), state.engine().settings
    if under_way(corpus):
        say.info(f"Corpus {corpus} is being built. Progress and Stop are in the sidebar.")
        return
    if build is not None:
        failed(build, f"Building corpus {corpus} failed")
    item = catalogue.describe(corpus, settings)
    if item.state in ("ready", "stale"):
        return
    built_in = settings.first_start != "off" and corpus in catalogue.BUILT_IN and item.state == "not built"
    its_turn = corpus not in catalogue.SHIPPED or all(job.done for job in first_start.known(settings.home))
    if build is None and built_in and its_turn:  # the first start left it until somebody needs it
        again(corpus)
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        why = f" {on_page(item.reason)}." if item.state == "damaged" else ""
        say.warning(f"Corpus {corpus} is {item.state}, so it cannot be searched yet.{why}")
        if st.button("Build it now", key="build_corpus", type="primary"):
            again(corpus)
            if under_way(corpus):
                st.rerun()
