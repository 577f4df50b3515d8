"""The frame around every page: navigation and the sidebar."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui import corpora, enrichments, health, link, state

UI = Path(__file__).resolve().parent.parent / "ui"

st.set_page_config(page_title="RouteScope", page_icon=str(UI / "icon.png"), layout="wide")
st.html(UI / "style.css")
# Popovers and dialogs hang outside the element whose color-scheme Streamlit sets; they take the page's.
theme = "dark" if st.context.theme.type == "dark" else "light"
st.html(f"<style>:root {{ color-scheme: {theme}; }}</style>")
st.logo(UI / f"logo-{theme}.svg", size="large")
link.adopt()
navigation = st.navigation(
    [
        st.Page("compare.py", title="Compare", icon=":material/view_column:", default=True),
        st.Page("sessions.py", title="Sessions", icon=":material/history:"),
    ]
)
with st.sidebar:
    corpora.choose()
    enrichments.menu(st.session_state[state.CORPUS])
    corpora.add()
    health.summary()
navigation.run()
with st.sidebar:
    health.trouble()
