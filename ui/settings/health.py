"""Health of this machine: every check with its fix."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from core.domain import people
from core.domain.format import size
from core.engine import endpoints
from core.engine.doctor import FILE, examine, of_endpoint
from core.store.files import vacuum
from ui.app import account, corpora, outcome, state
from ui.app.markup import fragment, md, show
from ui.app.routes import on_page

FOUND = "checks_found"  # in this session: the findings, once they are there
SIGNS = {"ok": ("works", ""), "warning": ("partly", "chip"), "failed": ("fails", "chip bad")}


def draw() -> None:
    """Draw every finding with its fix, checked again for each visitor and on request."""
    st.caption("What works here, what does not, and how to fix it. Models are tested on the tab Endpoints.")
    settings = state.engine().settings
    if FOUND not in st.session_state or st.button("Check again", key="check_again"):
        with st.spinner("Checking packages, disk, corpora, settings…", show_time=True):
            found = list(examine(settings, quick=True, note=lambda _: None))
            found += [of_endpoint(one, settings) for one in endpoints.endpoints(settings) if one.known]
            st.session_state[FOUND] = found
    found = st.session_state[FOUND]
    states = Counter(check.state for check in found)
    told = f"Of {len(found)} checks {states['ok']} pass, {states['warning']} pass in part"
    told += f", {states['failed']} fail." if states["failed"] else "."
    silent = endpoints.chat(settings).error
    if silent:
        told += " The language model cannot be asked, or did not answer when it was last tested."
    message = st.success if states["ok"] == len(found) and not silent else st.warning
    (st.error if states["failed"] else message)(told)
    worst = ("failed", "warning", "ok")
    rows = sorted(found, key=lambda one: worst.index(one.state))
    outcome.draw("health")
    with st.container(horizontal=True, gap="small"):
        for name in dict.fromkeys(check.corpus for check in rows if check.corpus):
            if st.button(md(f"Build {name}"), key=f"mend:{name}", **account.needs("edit")):
                corpora.again(name)
                st.rerun()
        if any(check.name == "space" and check.state != "ok" for check in rows):
            outcome.button("Free unused space", "health", _free, "mend_space", **account.needs("settings"))
    show(fragment("settings.checks", [(one, on_page(one.fix or "")) for one in rows], SIGNS))


def _free() -> outcome.Outcome:
    """Give the sessions file's unused space back to the disk."""
    people.require("settings")
    before, after = vacuum(state.engine().settings.home / FILE)
    st.session_state.pop(FOUND, None)
    return outcome.Outcome(f"Freed {size(before - after)}.")
