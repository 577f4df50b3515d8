"""Which two runs are compared, and which one is to be run again: the address alone says it."""

from __future__ import annotations

import streamlit as st


def show(first: str, second: str) -> None:
    """Compare two runs."""
    st.query_params.from_dict({"a": first, "b": second})


def run_again(run_id: str) -> None:
    """Choose what to change of a run."""
    st.query_params.from_dict({"again": run_id})


def back() -> None:
    """The list of all runs."""
    st.query_params.clear()


def pair() -> tuple[str, str] | None:
    """The ids of the two runs to compare, the first before the second; None where there are no two."""
    first, second = st.query_params.get("a"), st.query_params.get("b")
    return (first, second) if first and second else None


def chosen() -> str | None:
    """The id of the run to run again."""
    return st.query_params.get("again") or None
