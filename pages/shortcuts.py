"""Shortcuts: what the keyboard does, and which page answers which question."""

from __future__ import annotations

import streamlit as st

from ui.app import tour
from ui.app.data import table
from ui.app.markup import show, table_of, tag

rows = [
    tag("tr", tag("td", tag("kbd", row["keys"])), tag("td", row["where"]), tag("td", row["action"]))
    for row in table("shortcuts")["shortcut"]
]
head = tag("tr", *(tag("th", name) for name in ("Keys", "Where", "What")))
show(tag("div", table_of(head, rows), css="rs rs-keys"))
st.subheader("Which page to use", anchor=False)
for page in table("pages")["page"]:
    if question := page.get("question"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.page_link(page["path"], label=page["title"], width=190)
            st.caption(question)
tour.offer()
