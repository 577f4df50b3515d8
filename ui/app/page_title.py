"""The title in the browser's tab and history: the page, what it is about, and the program."""

from __future__ import annotations

import streamlit as st

from ui.app.markup import cut, show, tag

MAX_SUBJECT = 60  # characters
_PAGE = "_page_title"


def name(page: str) -> None:
    """Title the page, and give it the heading that screen readers look for."""
    st.session_state[_PAGE] = page
    st.set_page_config(page_title=f"{page} · RouteScope")
    show(tag("h1", page, css="rs-unseen"))


def about(subject: str) -> None:
    """Add what the page is about, such as its question, to the title."""
    page = st.session_state.get(_PAGE)
    if page and subject.strip():
        st.set_page_config(page_title=f"{page}: {cut(subject, MAX_SUBJECT)} · RouteScope")
