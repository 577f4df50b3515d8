"""Additions to a corpus: enrichments, which let more routes search it, and further vectors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.corpus import builds, catalogue
from core.corpus.catalogue import current_fingerprint
from core.corpus.enrichments import store
from core.corpus.manifest import CorpusInfo
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds, size
from ui.app import corpora, say, state, workers
from ui.app.markup import fragment, md, show
from ui.app.routes import by_family


def listing(corpus: str, passages: int) -> None:
    """Draw each enrichment of the corpus: its cost, or how to make it."""
    settings = state.engine().settings
    fingerprint = current_fingerprint(corpus, settings=settings)
    if fingerprint is None:
        return
    reasons = {name: store.missing(name, corpus, fingerprint, settings) for name in store.RECIPES}
    made = {name: store.describe(name, corpus, settings) for name in store.RECIPES}
    ready = sum(reason is None for reason in reasons.values())
    st.markdown("#### Enrichments")
    st.caption(
        f"{ready} of {len(reasons)} are built. Each is built once and lets more routes search this corpus."
    )
    there = [(name, one) for name, one in made.items() if one is not None]
    if there:
        show(costs([(one, reasons[name] is None) for name, one in there], passages))
        for name, one in there:
            for note in one.notes:
                say.caption(f"Note on {store.recipe(name).title}: {note}")
    for name, reason in reasons.items():
        if reason is not None:
            _make(corpus, name, reason, again=made[name] is not None)


def costs(made: Sequence[tuple[store.Made, bool]], passages: int) -> Markup:
    """Return a row of measured costs for each enrichment, with a mark on outdated ones."""
    return fragment("corpus.enrichments", [_row(one, passages, current) for one, current in made])


def _row(made: store.Made, passages: int, current: bool) -> tuple[str, str, bool, list[str]]:
    ms, spent = sum(made.build_ms.values()), made.spent
    stages = ", ".join(f"{stage} {milliseconds(took)}" for stage, took in made.build_ms.items())
    calls = f"{spent.calls:,}" + (f", {spent.recalled:,} cached" if spent.recalled else "")
    calls += f", {spent.failed:,} failed" if spent.failed else ""
    about = [f"searched by {_users(made.name)}", stages, f"by {made.llm}" if made.llm else ""]
    cells = [
        f"{made.entries:,}",
        milliseconds(ms) + (f" ({milliseconds(spent.ms)})" if spent.calls else ""),
        f"{passages / ms * 1000:,.1f}" if ms >= 1 and current else "–",
        calls if made.llm else "none",
        f"{spent.prompt_tokens:,} / {spent.completion_tokens:,}" if made.llm else "–",
        size(made.bytes),
    ]
    title = store.recipe(made.name).title if made.name in store.RECIPES else made.name
    return title, " · ".join(filter(None, about)), current, cells


def _users(name: str) -> str:
    """Return the titles of the routes that search an enrichment."""
    needs = ((route, {need.enrichment for need in route.every_need}) for route in by_family())
    return ", ".join(route.title for route, enrichments in needs if name in enrichments)


def _make(corpus: str, name: str, reason: str, *, again: bool) -> None:
    recipe, engine = store.recipe(name), state.engine()
    build = builds.get(f"{corpus} {name}")
    if build is not None and not build.done:
        say.caption(f"Building {recipe.title}. Progress and Stop are in the sidebar.")
        return
    if build is not None:
        corpora.failed(build, recipe.title)
    told = f"{recipe.title}, for {_users(name)}: takes {recipe.cost}"
    with suppress(RouteScopeError):  # a corpus that cannot be opened: the page says so where it lists it
        told += f"; about {size(store.about_bytes(name, engine.corpus(corpus), engine.settings))} on disk"
    told += ". Only changed passages are processed again." if again else "."
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Build", key=f"make:{corpus}:{name}", help=md(reason)):
            with say.errors():
                builds.start_enrichment(corpus, name, engine.settings, workers.chosen(corpora.BY))
                st.rerun()
        say.caption(told)


def vectors(item: catalogue.Known, info: CorpusInfo) -> None:
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
