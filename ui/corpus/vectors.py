"""The vectors of further embedders of a corpus: added once what that costs and takes is confirmed."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.corpus import builds, catalogue
from core.corpus.manifest import CorpusInfo
from core.domain.errors import RouteScopeError
from ui.app import corpora, state, workers
from ui.app.markup import md


def offer(item: catalogue.Known, info: CorpusInfo) -> None:
    """Draw the embedders in the settings whose vectors the corpus lacks, with a button that adds them."""
    settings = state.engine().settings
    if item.kind == "table" or info.place or item.chunking_of:
        return
    there = catalogue.embedders_of(info, settings)
    lacking = [one for one in dict.fromkeys((settings.embedder, *settings.embedders)) if one not in there]
    if not lacking:
        return
    st.markdown("#### Vectors of another embedder")
    st.caption(
        "Routes search them with their parameter `embedder`. What an embedding service will cost and take is"
        " told first; nothing is embedded before you confirm it. Progress and Stop are in the sidebar."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Embedder", lacking, key="add_embedder", width=320)
        busy = corpora.under_way(item.name)
        if st.button("Add vectors", key="add_vectors", disabled=busy):
            try:
                source = catalogue.source(item.name, settings=settings)
                builds.start(
                    item.name,
                    replace(source, embedders=(*there, name)),
                    settings,
                    workers.chosen(corpora.BY),
                    always=True,
                )
            except RouteScopeError as error:
                st.error(md(str(error)))
            else:
                st.rerun()
