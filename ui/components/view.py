"""The view of a run: baseline, depth, density and passage, kept for the session."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.analysis.run_view import worked
from core.domain import people
from core.domain.types import Run
from ui.app import address, picked
from ui.app.choice import choice
from ui.app.routes import title
from ui.components.grid import View

DEPTHS = (5, 10, 20, 50)
DENSITIES = ("S", "M", "L")
CHOSEN = "baseline_chosen"


def controls(run: Run, gold: Mapping[str, int]) -> View:
    """Draw the view's widgets and return the view."""
    baseline = _baseline([result.route for result in worked(run)])
    depth = choice("depth", "depth", "Hits", DEPTHS, usual=10, segmented=True)
    density = choice("density", "density", "Text", DENSITIES, usual="M", segmented=True)
    lit = picked.pick(run, gold, width=170, none="Find a passage", label_visibility="collapsed")
    gradable = run.status != "running" and people.current().may("label")
    return View(baseline, depth, density, gold, lit, gradable)


def _baseline(names: list[str]) -> str | None:
    address.take("baseline", "baseline", address.one_of(names))
    if st.query_params.get("baseline", "") == (st.session_state.get("baseline") or None):
        st.session_state[CHOSEN] = True
    # Until somebody chooses, it is the first route asked for, also when another one ended before it.
    if st.session_state.get("baseline") not in names or CHOSEN not in st.session_state:
        st.session_state["baseline"] = names[0] if names else None
    baseline: str | None = st.selectbox(
        "Baseline",
        names,
        key="baseline",
        format_func=title,
        width=200,
        persist_state="session",
        on_change=lambda: st.session_state.update({CHOSEN: True}),
    )
    address.keep("baseline", baseline if CHOSEN in st.session_state else None)
    return baseline
