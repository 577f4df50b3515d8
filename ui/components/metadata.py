"""The fields that filters on a corpus can use, as a table."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.corpus import catalogue
from core.corpus.metadata import Field
from core.domain.errors import RouteScopeError
from ui.app import state
from ui.app.markup import cut, md, show, table_of, tag

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
    try:
        known = state.engine().corpus(corpus).metadata.fields
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    if not known:
        st.caption(NO_METADATA)
        return
    head = tag(
        "tr",
        tag("th", "Field"),
        tag("th", "Kind"),
        tag("th", "Documents", css="num"),
        tag("th", "Most frequent values"),
    )
    show(tag("div", table_of(head, map(_row, known)), css="rs"))


def _row(field: Field) -> Markup:
    values = ", ".join(cut(value, VALUE_CHARACTERS) for value in field.values[:VALUES])
    return tag(
        "tr",
        tag("th", field.name, scope="row"),
        tag("td", field.kind),
        tag("td", f"{field.documents:,}", css="num"),
        tag("td", values, dir="auto"),
    )
