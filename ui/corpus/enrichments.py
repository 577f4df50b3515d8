"""Enrichments of a corpus, which let more routes search it: state, cost, and the button."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from core.corpus import builds
from core.corpus.catalogue import current_fingerprint
from core.corpus.enrichments import store
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds, size
from ui.app import corpora, state, workers
from ui.app.markup import join, md, show, table_of, tag
from ui.app.routes import by_family

HEAD = (
    "What",
    "State",
    "Entries",
    "Took",
    "Passages per second",
    "Model calls",
    "Tokens in / out",
    "On disk",
)


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
                st.caption(md(f"Note on {store.recipe(name).title}: {note}"))
    for name, reason in reasons.items():
        if reason is not None:
            _make(corpus, name, reason, again=made[name] is not None)


def costs(made: Sequence[tuple[store.Made, bool]], passages: int) -> Markup:
    """Return a row of measured costs for each enrichment, with a mark on outdated ones."""
    head = tag("tr", *[tag("th", name, css="num" if at > 1 else "") for at, name in enumerate(HEAD)])
    body = [_row(one, passages, current=current) for one, current in made]
    return tag(
        "div",
        table_of(head, body, css="rs-corpus-table"),
        tag(
            "div",
            "“Took” is elapsed time, near zero for cached replies. Brackets show the original model time.",
            css="dim",
        ),
        css="rs rs-corpus-scroll",
    )


def _row(made: store.Made, passages: int, *, current: bool) -> Markup:
    ms = sum(made.build_ms.values())
    stages = ", ".join(f"{stage} {milliseconds(took)}" for stage, took in made.build_ms.items())
    spent = made.spent
    calls = f"{spent.calls:,}" + (f", {spent.recalled:,} cached" if spent.recalled else "")
    calls += f", {spent.failed:,} failed" if spent.failed else ""
    users = [r.title for r in by_family() if any(need.enrichment == made.name for need in r.every_need)]
    title = store.recipe(made.name).title if made.name in store.RECIPES else made.name
    cells: list[object] = [
        f"{made.entries:,}",
        join([milliseconds(ms), f" ({milliseconds(spent.ms)})" if spent.calls else ""]),
        f"{passages / ms * 1000:,.1f}" if ms >= 1 and current else "–",
        calls if made.llm else "none",
        f"{spent.prompt_tokens:,} / {spent.completion_tokens:,}" if made.llm else "–",
        size(made.bytes),
    ]
    by = f"by {made.llm}" if made.llm else ""
    about = " · ".join(filter(None, [f"searched by {', '.join(users)}", stages, by]))
    return tag(
        "tr",
        tag("td", title, tag("div", about, css="dim")),
        tag("td", "ready" if current else "outdated", css="" if current else "bad"),
        *[tag("td", cell, css="num") for cell in cells],
    )


def _make(corpus: str, name: str, reason: str, *, again: bool) -> None:
    recipe = store.recipe(name)
    build = builds.get(f"{corpus} {name}")
    if build is not None and not build.done:
        st.caption(md(f"Building {recipe.title}. Progress and Stop are in the sidebar."))
        return
    if build is not None:
        corpora.failed(build, recipe.title)
    users = [
        route.title for route in by_family() if any(need.enrichment == name for need in route.every_need)
    ]
    earlier = " Only changed passages are processed again." if again else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Build", key=f"make:{corpus}:{name}", help=md(reason)):
            _begin(corpus, name)
        st.caption(
            md(
                f"{recipe.title}, for {', '.join(users)}: takes {recipe.cost}{_bytes(corpus, name)}.{earlier}"
            ),
            width="stretch",
        )


def _bytes(corpus: str, name: str) -> str:
    """Describe the enrichment's size on disk, or return "" if the corpus cannot be opened."""
    try:
        engine = state.engine()
        return f"; about {size(store.about_bytes(name, engine.corpus(corpus), engine.settings))} on disk"
    except RouteScopeError:  # which the page says where it lists the corpus
        return ""


def _begin(corpus: str, name: str) -> None:
    try:
        builds.start_enrichment(corpus, name, state.engine().settings, workers.chosen(corpora.BY))
    except RouteScopeError as error:
        st.error(md(str(error)))
    else:
        st.rerun()
