"""Help: which page answers which question, the tour, the keys, and the terms with their sources."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from ui.app import data, say, tour
from ui.app.glossary import TERMS, Term
from ui.app.help_mark import address
from ui.app.markup import show, table, tag
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
    asked = st.query_params.get("term")
    found = next((one for key, one in TERMS.items() if key.lower() == (asked or "").lower()), None)
    if found is not None:
        show(tag("dl", _entry(found), css="rs rs-glossary rs-glossary-asked"))
    elif asked:
        say.info(f"The Glossary has no term “{asked[:80]}”. All terms are below.")
    st.subheader("All terms", anchor=False)
    ordered = sorted(TERMS.values(), key=lambda one: one.name.lower())
    show(tag("dl", *(_entry(one) for one in ordered if one is not found), css="rs rs-glossary"))


def _entry(term: Term) -> Markup:
    """Return a term's name, sentence and source."""
    source = tag("a", term.source, href=term.url, target="_blank")
    return tag(
        "div",
        tag("dt", tag("a", term.name, href=address(term.key), target="_self")),
        tag("dd", term.sentence, tag("div", source, css="dim")),
        id=f"term-{term.key.replace(' ', '-').lower()}",
    )


tabs({"Pages": pages, "Shortcuts": shortcuts, "Glossary": glossary}, "help_tab")
