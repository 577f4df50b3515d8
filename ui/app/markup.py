"""The one way text becomes HTML or markdown here: everything is escaped unless this module made it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

import streamlit as st
from markupsafe import Markup, escape

_MARKS = re.compile(f"([{re.escape(string.punctuation)}])")
# Streamlit's markdown makes links of addresses in text, whatever was escaped: when it was read, each run of
# text is looked through for http:// or https://, www. and name@host. An empty element cuts these in two.
_LINKED = re.compile(r"(?=://)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
NOTHING = ":small[]"
EMPTY = Markup("")


def tag(name: str, *children: object, css: str = "", **attributes: object) -> Markup:
    """An element; children and attribute values are escaped unless they are Markup. data_p becomes data-p."""
    given = {"class": css, **attributes}
    marks = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in given.items()
        if value not in ("", None)
    )
    return Markup(f"<{name}{marks}>") + join(children) + Markup(f"</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Parts one after another; what is no Markup is escaped."""
    return Markup(between).join(escape(part) for part in parts)


def show(body: Markup) -> None:
    """Put HTML on the page; plain text is refused, so that an unescaped string cannot slip through."""
    if not isinstance(body, Markup):
        raise TypeError(f"only Markup is shown as HTML, not {type(body).__name__}")
    st.html(body)


def md(text: str) -> str:
    """`text` for a place that reads markdown (labels, messages): shown literally, on one line.

    Every punctuation mark gets a backslash, so no link, image, directive, formula or emoji code is left, and
    no address of a page or of a person stays in one piece that would become a link.
    """
    parts = _LINKED.split(" ".join(text.split()))
    return NOTHING.join(_MARKS.sub(r"\\\1", part) for part in parts)


def cut(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def table_of(head: object, rows: Iterable[object], *, css: str = "") -> Markup:
    """A table as all of ours look: `head` and `rows` are `tr` elements; `css` are further classes."""
    return tag("table", tag("thead", head), tag("tbody", *rows), css=f"rs-table {css}".rstrip())
