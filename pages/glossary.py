"""Glossary: what the terms on the pages mean, and where they come from."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from ui.app.glossary import TERMS, Term
from ui.app.markup import md, show, tag


def entry(term: Term) -> Markup:
    """One term: what it is, and its source."""
    source = tag("a", term.source, href=term.url, target="_blank")
    return tag(
        "div",
        tag("dt", tag("a", term.name, href=f"glossary?term={term.key}", target="_self")),
        tag("dd", term.sentence, tag("div", source, css="dim")),
        id=f"term-{term.key.replace(' ', '-').lower()}",
    )


asked = st.query_params.get("term")
found = next((one for key, one in TERMS.items() if key.lower() == (asked or "").lower()), None)
if found is not None:
    show(tag("dl", entry(found), css="rs rs-glossary rs-glossary-asked"))
elif asked:
    st.info(md(f"The Glossary has no term “{asked[:80]}”. All terms are below."))
st.subheader("All terms", anchor=False)
ordered = sorted(TERMS.values(), key=lambda one: one.name.lower())
show(tag("dl", *(entry(one) for one in ordered if one is not found), css="rs rs-glossary"))
