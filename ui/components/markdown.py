"""Renders a passage of a Markdown file: tables, lists and code, from untrusted text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from markupsafe import Markup

from core.analysis.term_contributions import Marker
from core.corpus.chunk import MARKDOWN
from ui.app.markup import EMPTY, join, tag
from ui.components.hits import marked

MAX_RENDERED = 50_000  # characters; a longer text is shown as it is stored
# What an element of Markdown becomes. Headings are none here: they would stand among those of the page.
BLOCKS: Mapping[str, tuple[str, str]] = {
    "paragraph": ("p", ""),
    "heading": ("p", "head"),
    "blockquote": ("blockquote", ""),
    "bullet_list": ("ul", ""),
    "ordered_list": ("ol", ""),
    "list_item": ("li", ""),
    "thead": ("thead", ""),
    "tbody": ("tbody", ""),
    "tr": ("tr", ""),
    "th": ("th", ""),
    "td": ("td", ""),
    "strong": ("b", ""),
    "em": ("i", ""),
    "s": ("del", ""),
}
ROW = re.compile(r"\s{0,3}\|.*\|\s*")
RULE = re.compile(r"[\s|:-]+")


def is_markdown(doc_id: str) -> bool:
    """Return whether a document is a Markdown file, or was converted to one, by its name."""
    return doc_id.lower().endswith(MARKDOWN)


def rendered(text: str, marker: Marker | None = None) -> Markup:
    """Return Markdown as HTML, with the words that `marker` finds marked.

    The parser only classifies: every element is made by `tag`, so text stays escaped, and HTML in it is
    text. Addresses follow a link's text and pictures become their descriptions: nothing is loaded or linked.
    """
    if len(text) > MAX_RENDERED:
        return tag("div", marked(text, marker), css="raw", dir="auto")
    return _inside(SyntaxTreeNode(_parser().parse(_with_head(text))), marker)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _with_head(text: str) -> str:
    """Add an empty head to a passage that begins inside a table, since Markdown needs one."""
    rows = 0
    lines = text.splitlines()
    while rows < len(lines) and ROW.fullmatch(lines[rows]):
        rows += 1
    if not rows or (rows > 1 and RULE.fullmatch(lines[1])):
        return text
    if RULE.fullmatch(lines[0]):
        lines, rows = lines[1:], rows - 1
    if not rows:
        return text
    cells = max(line.strip().count("|") for line in lines[:rows]) - 1
    return "\n".join(["|" + " |" * cells, "|" + "-|" * cells, *lines])


def _inside(node: SyntaxTreeNode, marker: Marker | None) -> Markup:
    return join(_element(one, marker) for one in node.children)


def _element(node: SyntaxTreeNode, marker: Marker | None) -> Markup:
    if node.type in BLOCKS:
        name, css = BLOCKS[node.type]
        inside = _inside(node, marker)
        if node.type == "thead" and not Markup(inside).striptags().strip():
            return EMPTY
        start = node.attrs.get("start", "") if name == "ol" else ""
        return tag(name, inside, css=css, start=start, dir="auto" if name in ("p", "li", "td", "th") else "")
    match node.type:
        case "table":
            return tag("div", tag("table", _inside(node, marker), css="rs-table"), css="wide", tabindex="0")
        case "fence" | "code_block":
            return tag("pre", tag("code", marked(node.content, marker)), tabindex="0")
        case "code_inline":
            return tag("code", marked(node.content, marker))
        case "hr":
            return Markup("<hr>")
        case "softbreak" | "hardbreak":
            return Markup("<br>")
        case "link":
            return _link(node, marker)
        case "image":
            return tag("span", "picture: ", node.content or str(node.attrs.get("src", "")), css="dim")
        case _ if node.children:
            return _inside(node, marker)
        case _:
            return marked(node.content, marker)


def _link(node: SyntaxTreeNode, marker: Marker | None) -> Markup:
    to = str(node.attrs.get("href", ""))
    inside = _inside(node, marker)
    shown = EMPTY if not to or inside.unescape() == to else tag("span", " (", to, ")", css="dim")
    return join([inside, shown])
