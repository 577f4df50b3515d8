"""What can be made for the corpus so that more routes can search it: state, cost, and the button."""

from __future__ import annotations

import streamlit as st

from core.corpus import builds
from core.corpus.index import current_fingerprint
from core.enrich import store
from core.errors import RouteScopeError
from ui import state
from ui.markup import md
from ui.routes import by_family


def menu(corpus: str) -> None:
    """Each enrichment of the corpus: made, and what it took, or how it can be made."""
    settings = state.engine().settings
    fingerprint = current_fingerprint(corpus, settings=settings)
    if fingerprint is None:
        return
    reasons = {name: store.missing(name, corpus, fingerprint, settings) for name in store.RECIPES}
    ready = sum(reason is None for reason in reasons.values())
    with st.expander(f"Made for more routes ({ready} of {len(reasons)})"):
        for name, reason in reasons.items():
            _one(corpus, name, reason)


def _one(corpus: str, name: str, reason: str | None) -> None:
    settings = state.engine().settings
    recipe, made = store.recipe(name), store.describe(name, corpus, settings)
    users = [route.title for route in by_family() if any(need.enrichment == name for need in route.needs)]
    title = f"{recipe.title[0].upper()}{recipe.title[1:]}"
    st.markdown(md(title), help=md(f"Searched by: {', '.join(users)}"))
    build = builds.get(f"{corpus} {name}")
    if build is not None and not build.done:
        st.caption("Being made; progress and Stop are below.")
        return
    if build is not None and build.error:
        st.error(md(build.error))
    if made is not None and reason is None:
        st.caption(md(_told(made)))
        for note in made.notes:
            st.caption(md(f"Note: {note}"))
        return
    stale = " Made for an earlier state of the corpus; only what changed is made anew." if made else ""
    st.caption(md(f"Takes {recipe.cost}.{stale}"))
    if st.button("Make", key=f"make:{corpus}:{name}"):
        try:
            builds.start_enrichment(corpus, name, settings)
        except RouteScopeError as error:
            st.error(md(str(error)))
        else:
            st.rerun()


def _told(made: store.Made) -> str:
    took = sum(made.build_ms.values()) / 1000
    model = f"; {made.llm}: {made.spent.calls:,} calls, {made.spent.ms / 1000:,.0f} s" if made.llm else ""
    return f"{made.entries:,} entries in {took:,.0f} s, {made.bytes / 2**20:,.1f} MiB{model}"
