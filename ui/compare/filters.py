"""Filters on metadata, entered next to the question."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.filters import FORM, MAX_FILTER_CHARS, MAX_FILTERS, Filter, read_filters
from core.domain.outputs import FiltersRead
from core.domain.types import Run
from ui.app import state
from ui.app.markup import md
from ui.components import metadata

HEIGHT = 260  # px of the list of fields
PLACEHOLDER = "owner~Logistics\nlast_updated>=2026-01"
HELP = f"One filter a line: {FORM}. Every route finds only passages whose documents meet all of them."


def chosen() -> tuple[Filter, ...]:
    """Return the filters as written. Raises BadInput for an invalid line."""
    return read_filters((st.session_state.get(state.FILTERS) or "").splitlines())


def menu(corpus: str, run: Run | None) -> None:
    """Draw the filters, those that the open run read from its question, and the fields to filter by."""
    count = sum(bool(line.strip()) for line in (st.session_state.get(state.FILTERS) or "").splitlines())
    with st.popover(f"Filters ({count})" if count else "Filters", key="filters_menu"):
        key = state.filters_key()
        st.text_area(
            "Filters",
            st.session_state.get(state.FILTERS, ""),
            key=key,
            height=96,
            width=560,
            max_chars=MAX_FILTERS * MAX_FILTER_CHARS,
            placeholder=PLACEHOLDER,
            help=HELP,
            on_change=_written,
            args=(key,),
        )
        try:
            chosen()
        except RouteScopeError as error:
            st.error(md(str(error)))
        if run is not None:
            _offered(run)
        with st.expander("Fields of this corpus", key="filters_fields", on_change="rerun") as panel:
            if panel.open:  # the first look reads the metadata of every document
                with st.container(height=HEIGHT):
                    metadata.fields(corpus)


def _offered(run: Run) -> None:
    """Draw the filters that a route of the open run read, with a button to use them for all routes."""
    if read := read_from(run):
        written = "\n".join(map(str, read))
        st.caption(md(f"Read from the question: {', '.join(map(str, read))}"))
        st.button("Use for all routes", key="filters_use", on_click=state.set_filters, args=(written,))


def read_from(run: Run) -> tuple[Filter, ...]:
    """Return the distinct filters that a run's steps read from its question."""
    outputs = [span.output for result in run.results for span in result.spans]
    kept = [one for output in outputs if isinstance(output, FiltersRead) for one in output.kept]
    return tuple(dict.fromkeys(kept))


def _written(key: str) -> None:
    st.session_state[state.FILTERS] = st.session_state[key]
