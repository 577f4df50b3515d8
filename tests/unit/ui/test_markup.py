"""What becomes HTML or markdown: nothing but our own marks comes through."""

import json
import os
import re
import string
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from core.analysis.run_view import gradings
from core.domain.outputs import Fusion
from core.domain.types import Link
from tests.runs import HOSTILE, make_run
from ui.app.markup import NOTHING, cut, join, md, show, tag
from ui.compare.steps import steps
from ui.components.grid import View, Waiting, grid
from ui.evaluators.grades import table

ROOT = Path(__file__).resolve().parents[3]


class Reader(HTMLParser):
    """Collects elements, attributes and text as a browser would read them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.data = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.data.append(data)


def payloads():
    """Hostile strings: the public set where it is there, and a few of our own."""
    given_path = os.environ.get("ROUTESCOPE_BENCH_DATA")
    folders = [Path(given_path)] if given_path else sorted(ROOT.glob("../*/data"))
    files = [f for folder in folders for f in (folder / "hostile").glob("xss_payloads.jsonl")]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]
    found = [value for row in rows for value in row.values() if isinstance(value, str)]
    return [*HOSTILE, *found]


@given(st.text(), st.text())
def test_any_text_comes_back_as_text(body, title):
    read = Reader(tag("p", body, title=title))
    assert read.tags == ["p"]
    assert "".join(read.data).replace("\r", "\n") == body.replace("\r", "\n")
    assert dict(read.attributes).get("title", "") == title


def test_payloads_stay_text_in_every_part_of_a_page():
    names = "div span section header details summary style ul li table thead tbody tr th td h4 b i ins del"
    allowed = set(names.split())
    run = make_run(hostile=True)
    view = View("bm25", 30, "L", {next(iter(run.passages)): 3})
    waiting = [Waiting(HOSTILE[0], True, HOSTILE[1])]
    well = make_run(hostile=True, mishaps=False)
    graded = [table(well, {}, one.output, 0.2, 0.9) for result in well.results for one in gradings(result)]
    assert graded
    for page in (grid(run, view, waiting), *graded, steps(run)):
        read = Reader(page)
        assert set(read.tags) <= allowed
        assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("href", "src")]


def test_every_known_payload_is_escaped():
    for payload in payloads():
        read = Reader(tag("p", payload, title=payload))
        assert read.tags == ["p"], payload
        assert [name for name, _ in read.attributes] in (["title"], []), payload


def test_plain_text_is_refused_as_html():
    with pytest.raises(TypeError, match="only Markup"):
        show("<b>not escaped</b>")


def test_join_escapes_what_is_not_markup():
    assert join(["<a>", Markup("<b>"), 3], " · ") == "&lt;a&gt; · <b> · 3"


# What becomes a link in a run of text once markdown was read: mdast-util-gfm-autolink-literal 2.0.1.
LINKED = re.compile(
    r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)|(?<![\w.+-])([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)", re.IGNORECASE
)
PIECES = st.lists(
    st.sampled_from(
        ["http", "https", "HTTP", "://", ":", "/", "www", "WWW", ".", "@", "a", "b.c", " ", "\\", "["]
    )
).map("".join)


@given(st.text(alphabet=st.characters(codec="ascii")) | PIECES)
def test_markdown_marks_are_all_taken_off(text):
    runs = []
    for escaped in md(text).split(NOTHING):
        position, plain = 0, []
        while position < len(escaped):
            if escaped[position] == "\\":
                position += 1
            else:
                assert escaped[position] not in string.punctuation
                assert escaped[position] != "\n"
            plain.append(escaped[position : position + 1])
            position += 1
        runs.append("".join(plain))
    assert "".join(runs) == " ".join(text.split())
    assert not [run for run in runs if LINKED.search(run)]


@pytest.mark.parametrize(
    "text", ["see http://evil.example/a", "HTTPS://evil.example", "www.evil.example", "a@b.c"]
)
def test_an_address_does_not_stay_in_one_piece(text):
    assert LINKED.search(text)
    assert NOTHING in md(text)


def test_cut_says_that_it_cut():
    assert cut("a  b\nc", 10) == "a b c"
    assert cut("abcdefghij", 5) == "abcd…"


def test_a_step_shows_what_it_was_given_by_which_parameter_and_what_came_of_it():
    """Generically: whatever the types of outputs are, each field that is told stands on the page."""
    base = make_run(mishaps=False)
    hybrid = next(result for result in base.results if result.route == "hybrid_rrf")
    fused = replace(
        hybrid.spans[-1],
        set_by={"k": "k", "weights.1": "dense_weight"},
        attributes={"note": HOSTILE[0]},
        links=(*hybrid.spans[-1].links, Link("lists[2]", None, 3)),
        output=Fusion("rrf", only={"a text": (HOSTILE[2],)}),
    )
    page = steps(replace(base, results=(replace(hybrid, spans=(*hybrid.spans[:-1], fused)),)))
    shown = Markup(page).striptags()
    for told in (
        "list 1: search BM25, ranks 1 to 30",
        "list 2: search vectors, ranks 1 to 30",
        "list 3: made by the route's own code",
        "k 60",
        "weights [1.0, 1.0]",
        "parameter k sets k, parameter dense_weight sets weights.1",
        "→ method rrf",
        "→ only {",
        "vector: embed",
        "→ texts [",
    ):
        assert told in shown, told
    assert "<img" not in page
    assert "&lt;img" in page
