"""Health of this machine, and the installed versions."""

from __future__ import annotations

import platform
from importlib.metadata import version

import streamlit as st

from core.domain import full_set
from core.domain.program import REPAIR
from core.engine import endpoints
from core.engine.doctor import MODEL_CHECKS, HealthCheck, examine
from ui.app import say, state
from ui.app.markup import fragment, show, table, tag

FOUND = "checks_found"  # in this session: the findings, once they are there
SIGNS = {"ok": ("works", ""), "warning": ("partly", "chip"), "failed": ("fails", "chip bad")}


def health() -> None:
    """Draw every finding with its fix, checked again for each visitor and on request."""
    st.caption("What works on this machine, what does not, and how to fix it. This check loads no model.")
    if FOUND not in st.session_state or st.button("Check again", key="check_again"):
        with st.spinner("Checking packages, disk, corpora, models, web search…", show_time=True):
            st.session_state[FOUND] = list(examine(state.engine().settings, quick=True, note=lambda _: None))
    found: list[HealthCheck] = st.session_state[FOUND]
    bad = sum(check.state == "failed" for check in found)
    odd = sum(check.state == "warning" for check in found)
    if bad:
        st.error(f"{bad} of {len(found)} checks fail; {odd} pass in part.")
    elif any(check.name in MODEL_CHECKS and check.state != "ok" for check in found):
        st.warning(f"The language model cannot be asked; {odd} of {len(found)} checks pass in part.")
    elif endpoints.llm_failure(state.engine()):
        st.warning("The language model did not answer when it was last tested.")
    elif odd:
        st.warning(f"Everything required works; {odd} of {len(found)} checks pass in part.")
    else:
        st.success(f"All {len(found)} checks pass.")
    worst = ("failed", "warning", "ok")
    show(fragment("settings.checks", sorted(found, key=lambda one: worst.index(one.state)), SIGNS))


def draw() -> None:
    """Draw the versions of the interpreter and of direct dependencies, next to the tested ones."""
    pins, other = full_set.pins(full_set.FULL), full_set.differing(full_set.FULL)
    rows = [("Python", platform.python_version(), "3.11 or newer")]
    rows += [
        (name, version(name) if other.get(name, "") is not None else "not installed", pin)
        for name, pin in pins.items()
    ]
    differing = f"Versions that differ from the tested ones: {', '.join(other)}. To repair: {REPAIR}."
    say.caption(differing if other else f"All {len(pins)} direct dependencies have the tested version.")
    say.caption(f"{platform.platform()}, {platform.machine()}")
    show(tag("div", table(("Package", "Installed", "Tested with"), rows), css="rs"))
