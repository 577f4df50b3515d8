"""Filters on metadata, entered next to the question."""

from __future__ import annotations

import streamlit as st

from core.domain.filters import FORM, MAX_FILTER_CHARS, MAX_FILTERS, Filter, read_filters
from core.domain.outputs import FiltersRead
from core.domain.types import Run
from ui.app import say, state
from ui.components import metadata

HEIGHT = 260  # px of the list of fields
PLACEHOLDER = "owner~Logistics\nlast_updated>=2026-01"
HELP = f"One filter a line: {FORM}. Every route finds only passages whose documents meet all of them."


def chosen() -> tuple[Filter, ...]:
    """Return the filters as written. Raises BadInput for an invalid line."""
    return read_filters((st.session_state.get(state.FILTERS) or "").splitlines())


def menu(corpus: str, run: Run | None) -> None:
    """Draw the filters, those that the open run read from its question, and the fields to filter by."""
    now, key = st.session_state.get(state.FILTERS) or "", state.filters_key()
    count = sum(bool(line.strip()) for line in now.splitlines())

    def written() -> None:
        st.session_state[state.FILTERS] = st.session_state[key]

    with st.popover(f"Filters ({count})" if count else "Filters", key="filters_menu"):
        st.text_area(
            "Filters",
            now,
            key=key,
            height=96,
            width=560,
            max_chars=MAX_FILTERS * MAX_FILTER_CHARS,
            placeholder=PLACEHOLDER,
            help=HELP,
            on_change=written,
        )
        with say.errors():
            chosen()
        if run is not None and (read := _read_from(run)):
            say.caption(f"Read from the question: {', '.join(read)}")
            lines = ("\n".join(read),)
            st.button("Use for all routes", key="filters_use", on_click=state.set_filters, args=lines)
        with st.expander("Fields of this corpus", key="filters_fields", on_change="rerun") as panel:
            if panel.open:  # the first look reads the metadata of every document
                with st.container(height=HEIGHT):
                    metadata.fields(corpus)


def _read_from(run: Run) -> list[str]:
    """Return the distinct filters that a run's steps read from its question."""
    outputs = [span.output for result in run.results for span in result.spans]
    kept = [str(one) for output in outputs if isinstance(output, FiltersRead) for one in output.kept]
    return list(dict.fromkeys(kept))
