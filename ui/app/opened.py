"""The run that the pages about one run look at: which it is, another one, and the link to this view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.types import Run
from core.engine.request import FILTERS, texts
from core.evaluation.finding import count
from core.store import SessionRow
from ui.app import address, page_title, state
from ui.app.markup import cut, md

RECENT = 50  # runs that are offered


def opened(purpose: str) -> Run | None:
    """Return the open run, else the last one of this browser session, with a line that describes it.

    Without one, return None and draw a choice of stored runs. Other people's runs appear only to those who
    choose them. `purpose` completes "Run a question first. This page shows ...".
    """
    run_id = st.session_state.get(state.RUN) or st.session_state.get(state.ASKED)
    if run_id is None:
        _none(purpose)
        return None
    try:
        run, _ = state.find(run_id)
    except RouteScopeError as error:
        st.error(md(str(error)))
        st.page_link("sessions.py", label="Choose another run")
        return None
    st.session_state[state.RUN] = run_id
    address.keep("run", run_id)
    page_title.about(run.query.text)
    _head(run)
    if run.status == "running":
        st.info("This run is not finished. The page shows the routes that have finished so far.")
        st.button("Refresh", key="look_again")
    return run


def to(page: str, label: str, **parameters: str) -> None:
    """Draw a link to another page about the open run."""
    st.page_link(page, label=md(label), query_params={"run": st.session_state[state.RUN], **parameters})


def link() -> None:
    """Draw the address of this view. Call it last, when the address is complete."""
    with st.sidebar:
        _link()


@st.fragment
def _link() -> None:
    """Draw the address in a fragment that reruns when opened, since the page may have changed it."""
    with st.popover("Link to this view", type="tertiary", key="link_here", on_change="rerun") as menu:
        if menu.open:
            st.caption("Opens this view with these results. No model needed.")
            st.code(address.here(), language=None)


def _head(run: Run) -> None:
    facts = [
        f"corpus {run.corpus}",
        count(len(run.results), "routes"),
        milliseconds(run.wall_ms),
        _when(run.created),
        *[f"filter {one}" for one in texts(run.settings.get(FILTERS))],
    ]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container():
            st.markdown(f"**{md(cut(run.query.text, 220))}**")
            before = f"after “{cut(run.query.history[0].text, 80)}” · " if run.query.history else ""
            st.caption(md(before + " · ".join(facts)))
        with st.popover("Another run", key="another_run", width="content"):
            if rows := _recent():
                _choose(rows, run)
            else:
                st.caption("No other run is stored.")


def _none(purpose: str) -> None:
    """Draw what to do if no run is open."""
    rows = _recent()
    st.subheader("No run is open" if rows else "No runs yet", anchor=False)
    first = "Run a question, or open a stored run" if rows else "Run a question first"
    st.caption(md(f"{first}. This page shows {purpose}."))
    if rows:
        _choose(rows)
    ask()


def ask() -> None:
    """Draw the button that goes to Compare, to ask a question."""
    if st.button("Ask a question", key="ask_first", type="primary"):
        st.switch_page("compare.py")


def _recent() -> dict[str, SessionRow]:
    return {row.id: row for row in state.store().sessions(limit=RECENT)}


def _choose(rows: Mapping[str, SessionRow], run: Run | None = None) -> None:
    """Draw a list of runs in which `run` is the open one."""
    now = run.id if run is not None else ""
    named = Counter(map(_named, rows.values()))  # entries of a list differ by their texts alone
    st.selectbox(
        "Recent runs",
        list(rows),
        index=list(rows).index(now) if now in rows else None,
        format_func=lambda id: _named(rows[id]) + (f" · {id[-8:]}" if named[_named(rows[id])] > 1 else ""),
        key=f"open:{now}",
        width=560,
        placeholder="Type to search questions",
        on_change=lambda: st.session_state.update({state.RUN: st.session_state[f"open:{now}"] or now}),
    )
    st.page_link("sessions.py", label="All runs")


def _named(row: SessionRow) -> str:
    return (
        f"{_when(row.created)} · {cut(row.question, 70)} · {row.corpus}, {count(len(row.routes), 'routes')}"
    )


def _when(created: str) -> str:
    return created[:16].replace("T", " ")
