"""Markdown of passages: what it becomes, and that nothing of hostile text becomes more than text."""

import time
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.analysis.term_contributions import Marker
from core.backends.terms import analyzer
from tests.runs import HOSTILE
from tests.unit.ui.test_markup import payloads
from ui.components.markdown import MAX_RENDERED, is_markdown, rendered

NAMES = {"p": "class dir", "ol": "start", "li": "dir", "div": "class tabindex dir", "table": "class"}
NAMES |= {"th": "dir", "td": "dir", "pre": "tabindex", "span": "class"}
NAMES |= dict.fromkeys(
    ["blockquote", "ul", "hr", "br", "thead", "tbody", "tr", "b", "i", "del", "code", "mark"], ""
)
ALLOWED = {tag: names.split() for tag, names in NAMES.items()}
VALUES = {"class": {"head", "wide", "rs-table", "dim", "raw"}, "dir": {"auto"}, "tabindex": {"0"}}
EMPTY = ("hr", "br")


class Reader(HTMLParser):
    """Elements as a browser would see them; fails at what is not allowed, or closed in another order."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.data = [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED
        for name, value in attrs:
            assert name in ALLOWED[tag]
            assert value.isdecimal() if name == "start" else value in VALUES[name]
        self.tags.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append(data)

    def refuse(self, *_):
        raise AssertionError("neither comments nor declarations")

    handle_comment = handle_decl = handle_pi = unknown_decl = refuse


def read(text, marker=None):
    return Reader(rendered(text, marker))


MARKS = (
    r"""¦    ¦| a | b |£|---|---|£| ¦ | ¦|¦```¦`¦```html£¦~~¦*¦**¦_¦- ¦1. ¦99999999999. ¦> ¦# ¦---£¦[a](¦)¦"""
    r"""![x](¦[r]££[r]: x 'y'¦<javascript:alert(1)>¦<http://evil.example>¦&lt;script&gt;¦"""
    r"""&#60;img src=x&#62;¦\<¦<!--¦-->¦<?php¦<![CDATA[¦]]>¦" onmouseover=alert(1) x="¦"""
    r"""'¦data:text/html,<script>"""
)
PIECES = st.sampled_from([*HOSTILE, "\n", "\n\n", "\x00", "\u202e", *MARKS.replace("£", "\n").split("¦")])


@given(st.lists(PIECES | st.text(max_size=8), max_size=25).map("".join), st.booleans())
@example("[x](javascript:alert(1)) ![y](http://evil.example/p.png) <javascript:alert(2)>", False)
@example('```" onload=alert(1)\n</code></pre><script>alert(1)</script>\n```', True)
@example("| <img src=x onerror=alert(1)> |\n|:--|\n| </td></table><svg onload=alert(1)> |", True)
def test_hostile_text_becomes_nothing_but_allowed_elements(text, with_marker):
    read(text, Marker("alert img script onerror", (), analyzer("english")) if with_marker else None)


@pytest.mark.slow
@pytest.mark.trust
def test_every_known_payload_stays_text():
    for text in payloads():
        for around in ("{}", "| {} |\n|---|\n| {} |", "- {}", "```\n{}\n```", "[{}](x)", "![{}]({})"):
            read(around.replace("{}", text))


def test_tables_lists_and_code_read_as_such():
    found = read(
        "## Fees\n\n| zone | fee |\n|---|--:|\n| EU | `4 EUR` |\n\n1. one\n2. **two**\n\n"
        "```sql\nSELECT 1 < 2\n```\n> said\n\nfirst line\nsecond line"
    )
    tags = "p div table thead tr th th tbody tr td td code ol li p li p b pre code blockquote p p br"
    assert found.tags == tags.split()
    assert "SELECT 1 < 2\n" in found.data
    assert read("3. three").tags == ["ol", "li", "p"]
    assert 'start="3"' in rendered("3. three")


def test_a_passage_that_begins_inside_a_table_is_one():
    for text in ("| EU | 4 |\n| US | 9 |\n\nafter", "|---|---|\n| EU | 4 |\n| US | 9 |\n\nafter"):
        found = read(text)
        assert (found.tags.count("tr"), found.tags.count("td"), found.tags.count("thead")) == (2, 4, 0)
        assert found.data == ["EU", "4", "US", "9", "after"]
    assert read("|---|").data == ["|---|"]
    assert "table" not in read("a | b").tags


def test_links_and_pictures_are_text():
    assert "".join(read("[terms](http://x.example/t)").data) == "terms (http://x.example/t)"
    assert "".join(read("<http://x.example/t>").data) == "http://x.example/t"
    assert "".join(read("![a chart](http://x.example/c.png)").data) == "picture: a chart"


def test_words_of_the_question_are_marked_in_every_part():
    marker = Marker("fee", (), analyzer("english"))
    assert rendered("# fee\n\n| fees |\n|---|\n| fee |\n\n`fee`", marker).count("<mark>") == 4


@pytest.mark.slow
def test_what_is_long_or_made_to_be_slow_is_soon_there():
    for text in (
        "[" * MAX_RENDERED,
        "*a **" * (MAX_RENDERED // 5),
        "> " * (MAX_RENDERED // 2),
        "`" * MAX_RENDERED,
        "|" * MAX_RENDERED,
    ):
        began = time.perf_counter()
        read(text)
        assert time.perf_counter() - began < 10
    assert read("# " + "x" * MAX_RENDERED).tags == ["div"]


def test_only_markdown_files_are_markdown():
    assert is_markdown("shipping/A.MD")
    assert is_markdown("a.markdown")
    assert not is_markdown("library/functions.txt")
