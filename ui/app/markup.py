"""The only way from text to HTML or Markdown: everything is escaped unless this module made it."""

from __future__ import annotations

import re
import string
from collections.abc import Container, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from core.domain.format import milliseconds, size
from core.evaluation.finding import count

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


def render(template: str, **values: Any) -> Markup:
    """Return the file `template`.html of ui/templates filled with `values`, which are escaped."""
    return Markup(_environment().get_template(f"{template}.html").render(values))


def fragment(name: str, *values: Any) -> Markup:
    """Return the macro `name`, "template.macro", of ui/templates called with `values`, which are escaped."""
    template, _, macro = name.partition(".")
    found: Markup = getattr(_environment().get_template(f"{template}.html").module, macro)(*values)
    return found


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).resolve().parent.parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cut": cut, "ms": milliseconds, "size": size, "count": count}
    return made


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


def table(
    heads: Iterable[object],
    rows: Iterable[Markup | Iterable[object]],
    *,
    numbers: Container[int] = (),
    css: str = "",
    foot: Iterable[object] = (),
) -> Markup:
    """Return a table in the common style, with the columns `numbers` aligned to the right.

    A row is its cells or a `tr` element, a cell is a text, or a text and its class.
    """

    def row(kind: str, cells: Markup | Iterable[object]) -> Markup:
        if isinstance(cells, Markup):
            return cells
        made = []
        for at, cell in enumerate(cells):
            text, css = cell if isinstance(cell, tuple) else (cell, "")
            number = at in numbers
            made.append(tag(kind, text, css=f"{'num ' * number}{css}".strip(), dir="" if number else "auto"))
        return tag("tr", *made)

    last = tag("tfoot", row("td", foot)) if foot else EMPTY
    body = tag("tbody", *(row("td", cells) for cells in rows))
    return tag("table", tag("thead", row("th", heads)), body, last, css=f"rs-table {css}".rstrip())
