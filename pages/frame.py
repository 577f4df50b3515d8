"""The frame around every page: navigation and the sidebar."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.domain import people
from core.domain.errors import RouteScopeError
from core.evaluation import first_start
from ui.app import account, corpora, evaluated, health, jobs, link, page_title, say, scripts, state, tour
from ui.app.data import table
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
        first_start.begin(state.engine())
    link.adopt()
    evaluated.adopt()
except RouteScopeError as error:  # the settings, or the file of sessions, are not ours to use: it says why
    st.error(md(str(error)))
    st.stop()
sections: dict[str, list[st.Page]] = {}
for number, page in enumerate(table("pages")["page"]):
    entry = st.Page(page["path"], title=page["title"], icon=page["icon"], default=number == 0)
    sections.setdefault(page["section"], []).append(entry)
navigation = st.navigation(sections, expanded=True)
with st.sidebar:
    page_title.name(navigation.title)
    account.sidebar()
    corpora.choose()
    jobs.draw()
    jobs.preparations()
    health.summary()
scripts.fold_sidebar(navigation.title)
tour.show()
jobs.announce()
with say.errors():  # what a page could not help by itself: the others work
    navigation.run()
with st.sidebar:
    health.trouble()
