"""The chunkings of a corpus: its source chunked or read in several ways; they are made here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from core.corpus import builds, catalogue
from core.corpus.catalogue import Known, token_lengths
from core.corpus.source import (
    ALLOWED_KEYS,
    Source,
    base_of,
    key_of,
    other_readings,
    variant_label,
    variants_named,
)
from core.domain.errors import BadInput
from core.domain.format import milliseconds, size
from ui.app import corpora, say, state, workers
from ui.app.help_mark import term
from ui.app.markup import md
from ui.app.plot import plot
from ui.app.progress import ended
from ui.app.routes import on_page
from ui.charts.percentiles import describe_lengths, length_ranges
from ui.components import tables

USUAL = ("256", "512", "1024", "headings", "sentences")
CHOSEN = "chunkings_new"


def draw(name: str) -> None:
    """Draw the existing chunkings, their passage lengths, and how to make more."""
    settings = state.engine().settings
    base = base_of(name)
    source = catalogue.source(base, settings=settings, known_only=True)
    known = [catalogue.describe(one, settings) for one in (base, *catalogue.indexed_variants(base, settings))]
    st.markdown(
        md(f"A chunking is the source of {base} chunked or read in another way, as its own corpus."),
        help=term("chunking"),
    )
    _table(known)
    built = [item for item in known if item.info is not None]
    lengths = {item.name: token_lengths(item.name, settings) for item in built}
    st.markdown("#### Length of the passages")
    told = ". ".join(f"{name}: {describe_lengths(tokens)}" for name, tokens in lengths.items())
    plot(length_ranges(lengths), "chunkings_lengths", told)
    st.caption("Dot: median. Thick line: the middle half. Thin line: from the 5th to the 95th percentile.")
    with st.container(horizontal=True, gap="medium"):
        for item in known:
            if item.chunking_of and item.info is not None:
                st.page_link("corpus.py", label=md(f"Open {item.name}"), query_params={"corpus": item.name})
        if len(known) > 1:
            st.page_link("evaluate.py", label="Compare them on Evaluate", query_params={"tab": "Chunkings"})
    _make(source, [item.name for item in known if item.chunking_of and item.state != "ready"])


def _table(known: list[Known]) -> None:
    rows = [
        {
            "Corpus": item.name,
            "Index": item.state,
            "Passages": info.passages if info else None,
            "On disk": size(info.bytes) if info else "",
            "Indexing took": milliseconds(sum(info.build_ms.values())) if info else "",
            "Vectors reused": 100 * info.reused / max(1, info.passages) if info else None,
            "Cut": variant_label(item.name, info) if info else "",
        }
        for item in known
        for info in [item.info]
    ]
    tables.table(rows, "chunkings_table", "Chunkings of the corpus with their size and cost", pinned="Corpus")
    for item in known:
        if item.state != "ready":
            say.caption(f"{item.name}: {on_page(item.reason)}")


def _make(source: Source, outdated: Sequence[str]) -> None:
    st.markdown("#### Index more chunkings")
    settings = state.engine().settings
    job = builds.get(builds.chunkings_of(source.name))
    if job is not None and not job.done:
        say.info(f"Indexing chunkings of {source.name}. Progress and Stop are in the sidebar.")
        return
    ended(job, "Indexing", "Indexing was stopped. Finished chunkings and embeddings made so far are kept.")
    there = {key_of(name) for name in catalogue.indexed_variants(source.name, settings)}
    there.add(source.chunking.key)
    readings: list[str] = []
    with suppress(BadInput, OSError):  # the source is gone; the list above says so
        readings = other_readings(source)
    offered = [*USUAL, *(key.replace("-", "=", 1) for key in readings if key not in there)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hint, note = "Choose, or type a size such as 512/64", md(f"Allowed: {ALLOWED_KEYS}.")
        given: Any = {"accept_new_options": True, "placeholder": hint, "help": note}
        keys = [key for key in offered if key not in there]
        chosen: list[str] = st.multiselect("Chunkings", keys, key=CHOSEN, **given)
        if st.button("Index", key="chunkings_make", type="primary", disabled=not chosen):
            _begin(source, ",".join(chosen))
        if outdated and st.button(f"Refresh {len(outdated)} outdated", key="chunkings_refresh"):
            _begin(source, ",".join(str(key_of(name)) for name in outdated))
    st.caption("Reads the source again for each. Embeddings are reused across chunkings.")


def _begin(source: Source, given: str) -> None:
    settings = state.engine().settings
    with say.errors():
        sources = [catalogue.source(one, settings=settings) for one in variants_named(source, given)]
        if not sources:
            say.info(f"{source.name} is cut as {source.chunking.key} already.")
            return
        builds.start_chunkings(source.name, sources, settings, workers.chosen(corpora.BY))
        st.rerun()
