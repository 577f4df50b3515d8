"""The list of runs: search, filters, pages by key, and which rows are picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import streamlit as st

from core.domain.errors import BadInput
from core.domain.format import milliseconds
from core.store import Choices, Filters, SessionRow, Store
from ui.app import address, say
from ui.app.choice import choice
from ui.app.routes import title
from ui.components import tables

PAGE = 50
PAGES = "session_pages"  # the last ids of the pages before the one shown
REVISION = "session_revision"  # grows with every change, so that no pick outlives its row
SEARCH = "session_search"
KEY = "session_{}"  # of a filter's widget
ALL_LABELS = {"corpus": "All corpora", "route": "Any route", "tag": "Any tag", "status": "Any status"}
STATUSES = {
    "done": "done",
    "running": "running",
    "cancelled": "stopped early",
    "interrupted": "interrupted (its process ended)",
}


def changed() -> None:
    """Drop the selection, since rows were added, removed or changed."""
    st.session_state[REVISION] = st.session_state.get(REVISION, 0) + 1


def first_page() -> None:
    """Go to the newest run for another search or filter."""
    st.session_state[PAGES] = []
    changed()


def listing(store: Store) -> tuple[list[SessionRow], str, Filters]:
    """Draw search, filters and table; returns the rows that are picked, and what all found are found by."""
    search, only = _filters(store.choices())
    pages: list[str] = st.session_state.setdefault(PAGES, [])
    try:
        rows = store.sessions(search, before=pages[-1] if pages else None, limit=PAGE + 1, **only)
    except BadInput:  # the run above this page was deleted for good
        if not pages:
            raise
        first_page()
        rows = store.sessions(search, limit=PAGE + 1, **only)
    total = store.count(search, **only)
    if not rows:
        what = f" “{search.strip()}”" if search.strip() else ""
        say.info(f"No run matches{what}. Try fewer words or filters.")
        st.button("Show all runs", key="session_clear", on_click=_clear)
        return [], search, only
    shown, more = rows[:PAGE], len(rows) > PAGE
    picked = _table(shown)
    _pager(shown, total, more=more)
    return picked, search, only


def _filters(choices: Choices) -> tuple[str, Filters]:
    """Draw the filters, set from the address, and return the search text and the filters."""
    address.take("search", SEARCH, str)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        search = st.text_input(
            "Search",
            key=SEARCH,
            placeholder="Words in a question, answer, route, tag or note",
            on_change=first_page,
            persist_state="session",
            width=360,
        )
        only = Filters(
            corpus=_choice("corpus", choices.corpora, str),
            route=_choice("route", choices.routes, title),
            tag=_choice("tag", choices.tags, str),
            status=_choice("status", choices.statuses, lambda status: STATUSES.get(status, status)),
            since=_day("since", "From (UTC)"),
            until=_day("until", "To (UTC)"),
        )
    address.keep("search", search.strip())
    return search, only


def _choice(name: str, options: Sequence[str], spoken: Callable[[str], str]) -> str | None:
    named: dict[str | None, str] = {None: ALL_LABELS[name]}
    named |= {one: spoken(one) for one in options}
    key, label = KEY.format(name), name.capitalize()
    return choice(name, key, label, named, width=170, on_change=first_page)


def _day(name: str, label: str) -> date | None:
    key = KEY.format(name)
    address.take(name, key, date.fromisoformat)
    day: Any = st.date_input(
        label,
        value=None,
        key=key,
        format="YYYY-MM-DD",
        width=130,
        on_change=first_page,
        persist_state="session",
        min_value=date(2000, 1, 1),
        max_value=date(2100, 1, 1),
    )
    chosen = day if isinstance(day, date) else None
    address.keep(name, chosen.isoformat() if chosen else None)
    return chosen


def _clear() -> None:
    st.session_state[SEARCH] = ""
    for name in (*ALL_LABELS, "since", "until"):
        st.session_state[KEY.format(name)] = None
    first_page()


def _table(rows: Sequence[SessionRow]) -> list[SessionRow]:
    made = any(row.maker for row in rows)
    event = tables.table(
        [
            {
                "Asked (UTC)": row.created[:16].replace("T", " "),
                "Question": row.question,
                **({"By": row.maker, "Seen by": "only you" if row.private else "all"} if made else {}),
                "Corpus": row.corpus,
                "Routes": len(row.routes),
                "Took": milliseconds(row.wall_ms),
                "Status": row.status,
                "Tags": list(row.tags),
                "Note": row.note,
            }
            for row in rows
        ],
        f"sessions:{st.session_state.get(REVISION, 0)}:{len(st.session_state[PAGES])}",
        "Matching runs, newest first",
        height=min(38 + 35 * len(rows), 560),
        on_select="rerun",
        selection_mode="multi-row",
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
