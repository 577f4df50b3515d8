"""How a run is looked at: baseline, depth and density, kept while the session lasts."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.reading import worked
from core.types import Run
from ui.grid import View
from ui.routes import title

DEPTHS = (5, 10, 20, 50)


def controls(run: Run, gold: Mapping[str, int]) -> View:
    """Draw the view's widgets in one row."""
    names = [result.route for result in worked(run)]
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        # Until somebody chooses, it is the first route asked for, also when another one ended before it.
        if st.session_state.get("baseline") not in names or "baseline_chosen" not in st.session_state:
            st.session_state["baseline"] = names[0] if names else None
        baseline = st.selectbox(
            "Baseline",
            names,
            key="baseline",
            format_func=title,
            width=190,
            help="Every other route shows what moved against this one",
            persist_state="session",
            on_change=_chosen,
        )
        depth = st.segmented_control(
            "Hits", DEPTHS, default=10, required=True, key="depth", persist_state="session"
        )
        density = st.segmented_control(
            "Text", ["S", "M", "L"], default="M", required=True, key="density", persist_state="session"
        )
    return View(baseline, depth or 10, density or "M", gold)


def _chosen() -> None:
    st.session_state["baseline_chosen"] = True
