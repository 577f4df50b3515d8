"""The two runs to compare, or the run to repeat, kept in the address alone."""

from __future__ import annotations

import streamlit as st


def show(first: str, second: str) -> None:
    """Compare two runs."""
    st.query_params.from_dict({"a": first, "b": second})


def run_again(run_id: str) -> None:
    """Choose what to change of a run."""
    st.query_params.from_dict({"again": run_id})


def back() -> None:
    """Return to the list of all runs."""
    st.query_params.clear()


def pair() -> tuple[str, str] | None:
    """Return the ids of the two runs to compare, or None without two."""
    first, second = st.query_params.get("a"), st.query_params.get("b")
    return (first, second) if first and second else None


def chosen() -> str | None:
    """Return the id of the run to repeat, or None."""
    return st.query_params.get("again") or None
