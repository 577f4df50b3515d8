"""Help: which page answers which question, the tour, the keys, and the terms with their sources."""

from __future__ import annotations

import streamlit as st

from ui.app import data, say, tour
from ui.app.glossary import TERMS
from ui.app.help_mark import address
from ui.app.markup import fragment, show, table, tag
from ui.app.tabs import tabs


def pages() -> None:
    """Draw a link to each page with the question that it answers, and the tour."""
    tour.offer()
    for page in data.table("pages")["page"]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.page_link(page["path"], label=page["title"], width=190)
            st.caption(page["question"])


def shortcuts() -> None:
    """Draw what each key does."""
    rows = [
        (tag("kbd", row["keys"]), row["where"], row["action"]) for row in data.table("shortcuts")["shortcut"]
    ]
    show(tag("div", table(("Keys", "Where", "What"), rows), css="rs rs-keys"))


def glossary() -> None:
    """Draw all terms, the one in the address first."""
    asked = st.query_params.get("term", "")
    first = [one for one in TERMS.values() if one.key.lower() == asked.lower()]
    rest = sorted((one for one in TERMS.values() if one not in first), key=lambda one: one.name.lower())
    if asked and not first:
        say.info(f"The Glossary has no term “{asked[:80]}”. All terms are below.")
    for terms, css in ((first, "rs-glossary-asked"), (rest, "")):
        if terms is rest:
            st.subheader("All terms", anchor=False)
        if terms:
            show(fragment("app.terms", [(one, address(one.key)) for one in terms], css))


tabs({"Pages": pages, "Shortcuts": shortcuts, "Glossary": glossary}, "help_tab")
