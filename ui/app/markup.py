"""The only way from text to HTML or Markdown: everything is escaped unless this module made it."""

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
    """Return an element.

    Children and attribute values are escaped unless they are Markup; data_p becomes data-p.
    """
    given = {"class": css, **attributes}
    marks = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in given.items()
        if value not in ("", None)
    )
    return Markup(f"<{name}{marks}>") + join(children) + Markup(f"</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Join parts, escaping those that are not Markup."""
    return Markup(between).join(escape(part) for part in parts)


def show(body: Markup) -> None:
    """Put HTML on the page. Raises TypeError for plain text, so unescaped strings cannot slip through."""
    if not isinstance(body, Markup):
        raise TypeError(f"only Markup is shown as HTML, not {type(body).__name__}")
    st.html(body)


def md(text: str) -> str:
    """Escape `text` for labels and messages read as Markdown: it appears literally, on one line.

    Every punctuation mark gets a backslash, so no link, image, directive, formula or emoji code is left, and
    no web or email address stays in one piece that would become a link.
    """
    parts = _LINKED.split(" ".join(text.split()))
    return NOTHING.join(_MARKS.sub(r"\\\1", part) for part in parts)


def cut(text: str, limit: int) -> str:
    """Shorten `text` to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def table_of(head: object, rows: Iterable[object], *, css: str = "") -> Markup:
    """Return a table in the common style. `head` and `rows` are `tr` elements; `css` adds classes."""
    return tag("table", tag("thead", head), tag("tbody", *rows), css=f"rs-table {css}".rstrip())
