"""The frame around every page: navigation and the sidebar."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.domain import people
from core.domain.errors import RouteScopeError
from ui.app import account, corpora, first_start, health, jobs, link, tour
from ui.app.markup import md

UI = Path(__file__).resolve().parent.parent / "ui"

st.set_page_config(page_title="RouteScope", page_icon=str(UI / "icon.png"), layout="wide")
st.html(UI / "style.css")
# Popovers and dialogs hang outside the element whose color-scheme Streamlit sets; they take the page's.
theme = "dark" if st.context.theme.type == "dark" else "light"
st.html(f"<style>:root {{ color-scheme: {theme}; }}</style>")
st.logo(UI / f"logo-{theme}.svg", size="large")
try:
    if not account.admitted():
        st.stop()
    with people.acting(people.MACHINE):  # whoever comes first
        first_start.begin()
    link.adopt()
except RouteScopeError as error:  # the settings, or the file of sessions, are not ours to use: it says why
    st.error(md(str(error)))
    st.stop()
navigation = st.navigation(
    {
        "Question": [
            st.Page("compare.py", title="Compare", icon=":material/view_column:", default=True),
            st.Page("why.py", title="Why", icon=":material/filter_alt:"),
            st.Page("transform.py", title="Transform", icon=":material/edit_note:"),
            st.Page("fusion.py", title="Fusion", icon=":material/merge:"),
            st.Page("graph.py", title="Graph", icon=":material/hub:"),
            st.Page("evaluators.py", title="Evaluators", icon=":material/rule:"),
            st.Page("latency.py", title="Latency", icon=":material/timer:"),
        ],
        "Decide": [
            st.Page("label.py", title="Label", icon=":material/label:"),
            st.Page("evaluate.py", title="Evaluate", icon=":material/leaderboard:"),
            st.Page("tune.py", title="Tune", icon=":material/tune:"),
            st.Page("release.py", title="Release", icon=":material/verified:"),
        ],
        "Workspace": [
            st.Page("sessions.py", title="Sessions", icon=":material/history:"),
            st.Page("present.py", title="Present", icon=":material/slideshow:"),
            st.Page("corpus.py", title="Corpus", icon=":material/library_books:"),
            st.Page("your_pipeline.py", title="Your pipeline", icon=":material/cable:"),
        ],
        "System": [
            st.Page("settings.py", title="Settings and health", icon=":material/settings:"),
            st.Page("shortcuts.py", title="Shortcuts", icon=":material/keyboard:"),
            st.Page("glossary.py", title="Glossary", icon=":material/dictionary:"),
        ],
    },
    expanded=True,
)
with st.sidebar:
    account.sidebar()
    corpora.choose()
    jobs.draw()
    first_start.draw()
    health.summary()
tour.show()
try:
    navigation.run()
except RouteScopeError as error:  # what a page could not help by itself: it is told, and the others work
    st.error(md(str(error)))
with st.sidebar:
    health.trouble()
