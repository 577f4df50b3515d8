"""The vectors of further embedders of a corpus: added once what that costs and takes is confirmed."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.corpus import builds, catalogue
from core.corpus.manifest import CorpusInfo
from ui.app import corpora, say, state, workers


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
    st.caption("Routes search them with their parameter `embedder`. A service's cost is confirmed first.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Embedder", lacking, key="add_embedder", width=320)
        busy = corpora.under_way(item.name)
        if st.button("Add vectors", key="add_vectors", disabled=busy):
            with say.errors():
                source = replace(catalogue.source(item.name, settings=settings), embedders=(*there, name))
                builds.start(item.name, source, settings, workers.chosen(corpora.BY), always=True)
                st.rerun()
