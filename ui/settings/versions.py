"""What works on this machine, and which versions of what are installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

from core.domain.settings import PROJECT
from core.engine.doctor import Check, examine
from ui.app import state
from ui.app.markup import EMPTY, md, show, table_of, tag

FOUND = "checks_found"  # in this session: the findings, once they are there
SIGNS = {"ok": ("works", ""), "warning": ("partly", "chip"), "failed": ("fails", "chip bad")}


def health() -> None:
    """Every finding with its fix; looked at anew for each visitor, and when asked."""
    st.caption(
        "What works on this machine, what does not, and what to do about it. No model is loaded for this."
    )
    if FOUND not in st.session_state or st.button("Check again", key="check_again"):
        with st.spinner("Looking at packages, disk, corpora, models, web search…", show_time=True):
            st.session_state[FOUND] = list(examine(state.engine().settings, quick=True, note=lambda _: None))
    found: list[Check] = st.session_state[FOUND]
    bad = sum(check.state == "failed" for check in found)
    odd = sum(check.state == "warning" for check in found)
    if bad:
        st.error(f"{bad} of {len(found)} fail, {odd} work in part.")
    elif odd:
        st.warning(f"Everything needed works; {odd} of {len(found)} work in part.")
    else:
        st.success(f"All {len(found)} are well.")
    rows = [
        _row(check)
        for check in sorted(found, key=lambda check: ("failed", "warning", "ok").index(check.state))
    ]
    head = tag("tr", *(tag("th", name) for name in ("What", "State", "Found")))
    show(tag("div", table_of(head, rows), css="rs"))
    st.caption("`python -m core doctor` looks at the same, and loads the models too.")


def draw() -> None:
    """Versions of the interpreter and of every direct dependency, against those it was tested with."""
    lines = (PROJECT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.strip().split("==") for line in lines if "==" in line and not line.startswith("#"))
    rows = [("Python", platform.python_version(), "3.11 or newer")]
    rows += [(name, _installed(name), pin) for name, pin in pins.items()]
    other = [name for name, have, pin in rows[1:] if have.split("+")[0] != pin]
    st.caption(
        md(
            f"{len(pins)} direct dependencies, all as they were tested."
            if not other
            else f"Other versions than tested: {', '.join(other)}. Run make setup."
        )
    )
    st.caption(md(f"{platform.platform()}, {platform.machine()}"))
    head = tag("tr", *(tag("th", name) for name in ("Package", "Installed", "Tested with")))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    show(tag("div", table_of(head, body), css="rs"))


def _row(check: Check) -> object:
    said, css = SIGNS[check.state]
    fix = tag("div", "→ ", check.fix, css="dim") if check.fix else EMPTY
    state_ = tag("span", said, css=css) if css else said
    return tag("tr", tag("td", check.name), tag("td", state_), tag("td", check.detail, fix))


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
