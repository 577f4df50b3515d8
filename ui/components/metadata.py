"""The fields that filters on a corpus can use, as a table."""

from __future__ import annotations

import streamlit as st

from core.corpus import catalogue
from ui.app import say, state
from ui.app.markup import cut, show, table, tag

VALUES, VALUE_CHARACTERS = 3, 32  # of a field, and characters of one, that the list shows
NO_METADATA = (
    "The documents of this corpus have no metadata: no further columns or keys, no lines such as “Owner: ...”"
    " at their top, no folders."
)


def fields(corpus: str) -> None:
    """Draw each field with its kind, document count and some values. The first call reads all metadata."""
    if catalogue.describe(corpus, state.engine().settings).info is None:
        st.caption("The corpus is not indexed yet, so its fields are not known.")
        return
    with say.errors():
        known = state.engine().corpus(corpus).metadata.fields
        if not known:
            st.caption(NO_METADATA)
            return
        rows = [
            (
                field.name,
                field.kind,
                f"{field.documents:,}",
                ", ".join(cut(value, VALUE_CHARACTERS) for value in field.values[:VALUES]),
            )
            for field in known
        ]
        heads = ("Field", "Kind", "Documents", "Most frequent values")
        show(tag("div", table(heads, rows, numbers=(2,)), css="rs"))
