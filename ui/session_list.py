"""The list of runs: search, filter, pages by key, and which rows are picked."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.charts.look import milliseconds
from core.store import SessionRow, Store
from ui.markup import md

PAGE = 50
PAGES = "session_pages"  # the last ids of the pages before the one shown
REVISION = "session_revision"  # grows with every change, so that no pick outlives its row


def changed() -> None:
    """Rows came, went or changed: picks are dropped."""
    st.session_state[REVISION] = st.session_state.get(REVISION, 0) + 1


def first_page() -> None:
    """Another search or filter begins at the newest run."""
    st.session_state[PAGES] = []
    changed()


def listing(store: Store, corpora: Sequence[str]) -> list[SessionRow]:
    """Draw search, filter and table; returns the rows that are picked."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search",
            key="session_search",
            placeholder="Words of the question, an answer, a route, a tag or a note",
            on_change=first_page,
        )
        corpus = st.selectbox(
            "Corpus", [None, *corpora], key="session_corpus", width=220, on_change=first_page,
            format_func=lambda name: name or "All corpora",
        )  # fmt: skip
    pages: list[str] = st.session_state.setdefault(PAGES, [])
    rows = store.sessions(search, corpus=corpus, before=pages[-1] if pages else None, limit=PAGE + 1)
    total = store.count(search, corpus=corpus)
    if not rows:
        if search.strip() or corpus or pages:
            st.info(md(f"No run matches{f' “{search.strip()}”' if search.strip() else ''}. Search for less."))
        return []
    shown, more = rows[:PAGE], len(rows) > PAGE
    picked = _table(shown)
    _pager(shown, total, more=more)
    return picked


def _table(rows: Sequence[SessionRow]) -> list[SessionRow]:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "Asked (UTC)": [row.created[:16].replace("T", " ") for row in rows],
            "Question": [row.question for row in rows],
            "Corpus": [row.corpus for row in rows],
            "Routes": [len(row.routes) for row in rows],
            "Took": [milliseconds(row.wall_ms) for row in rows],
            "Status": [row.status for row in rows],
            "Tags": [list(row.tags) for row in rows],
            "Note": [row.note for row in rows],
        }
    )
    event = st.dataframe(
        frame,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key=f"sessions:{st.session_state.get(REVISION, 0)}:{len(st.session_state[PAGES])}",
        height=min(38 + 35 * len(rows), 560),
        column_config={
            "Asked (UTC)": st.column_config.TextColumn(width=130),
            "Question": st.column_config.TextColumn(width=430),
            "Routes": st.column_config.NumberColumn(width=60),
            "Took": st.column_config.TextColumn(width=75),
            "Tags": st.column_config.ListColumn(width=130),
        },
        alt="Every run, newest first",
    )
    return [rows[n] for n in event["selection"]["rows"] if n < len(rows)]


def _pager(rows: Sequence[SessionRow], total: int, *, more: bool) -> None:
    pages: list[str] = st.session_state[PAGES]
    start = PAGE * len(pages)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{start + 1:,} to {start + len(rows):,} of {total:,} runs, newest first", width="stretch")
        if pages and st.button("Newer", key="newer"):
            pages.pop()
            st.rerun()
        if more and st.button("Older", key="older"):
            pages.append(rows[-1].id)
            st.rerun()
