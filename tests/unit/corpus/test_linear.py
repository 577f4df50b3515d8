"""Text is anybody's: what looks through it takes time with its length, and not with its square.

The square of these lengths would take minutes to hours, so that the limit of time is no tight one.
"""

import re
import time

import pytest

from core.backends.prompting import citations, untrusted
from core.backends.terms import analyzer
from core.corpus import chunk, html
from core.corpus.chunk import Chunking, passages
from core.corpus.enrichments.keys import heading_paths
from core.corpus.markdown import titled
from core.corpus.types import Document
from core.domain.types import Passage
from core.steps.gate import exact_terms
from core.steps.self_rag import foreign
from ui.components.rewrites import word_diff

LONG = 300_000
SHORTER = 100_000  # of which the square still takes minutes


def times(unit, length=LONG):
    return unit * (length // len(unit))


def paths(text):
    return heading_paths([Passage("p", "d", "", text, 0, len(text))])


READ = [
    (titled, "# a" + times(" ") + "b"),
    (titled, "# a" + times("# ") + "b"),
    (titled, times("# \n", SHORTER)),
    (titled, "#" + times(" ")),
    (paths, "# a" + times(" ") + "b"),
    (paths, "# a" + times(" #") + "b"),
    (paths, times("#\n\n")),
    (lambda text: word_diff(text, text.replace("a", "b")), times("a ", 100_000)),
    (lambda text: word_diff(text, text.replace("a", "b")), times("a. ", 100_000)),
    (lambda text: list(analyzer("english").terms(text)), times("a")),
    (lambda text: list(analyzer("english").terms(text)), times("ab-")),
]
UNITS = [
    *(("A", "A", "b"), ("X-A", "Aa-Aa-", ""), ("v", "1.", ""), ("[", "1, ", ""), ("", " ", ".")),
    *(("system", " ", ""), ("[", " ", "")),
    *(
        ("", unit, "")
        for unit in ("1'", "a.a ", "#1234 ", "Dr. ", ".", "[1 ", "[1] ", "\n", "# \n", "a_", "/a")
    ),
]
SAID = [
    (function, before + times(unit, SHORTER) + after)
    for function in (
        *(exact_terms, citations.sentences, citations.unmarked, citations.markers, citations.abstains),
        *(untrusted.instructions, foreign),
    )
    for before, unit, after in UNITS
]


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.parametrize(("function", "text"), [*READ, *SAID], ids=map(str, range(len([*READ, *SAID]))))
def test_texts_are_looked_through_in_linear_time(function, text):
    began = time.process_time()  # what others run at the same time does not count
    function(text)
    assert time.process_time() - began < 45


PAGES = {
    "nested": times("<div>", 2_200_000) + "The end",
    "nested and closed": times("<div>") + "The end" + times("</div>"),
    "closed for nothing": times("<div>") + times("</span>") + "The end",
    "closed for nothing, allowed": "<div>" * 500 + times("</p>") + "The end",
    "tables": times("<table><tr><td>") + "The end",
    "formatting": times("<b><p>") + "The end",
    "bracket": times("<") + " The end",
    "comment": "The end<!--" + times("-"),
    "attributes": f"<p {times('a=1 ')}>The end",
    "quote": "The end<p title='" + times("x"),
    "script": "The end<script>" + times("</scrip"),
}


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_read_in_linear_time_and_keep_their_text(name):
    assert "The end" in html.read(PAGES[name].encode()).text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize(
    "unit", ["a", "\n", "> ", "- item\n", "[", "*a _b ", "|a|b|\n|-|-|\n", "word and word. "]
)
def test_the_splitter_sees_each_letter_about_once(name, unit, monkeypatch):
    given = []

    class Watched:
        def __init__(self, splitter):
            self.splitter = splitter

        def chunk_indices(self, text):
            given.append(len(text))
            return self.splitter.chunk_indices(text)

    real = chunk._splitter
    monkeypatch.setattr(chunk, "_splitter", lambda *how: Watched(real(*how)))
    text = times(unit, 300_000)
    found = passages(Document(name, "", text), Chunking(700))
    assert sum(len("".join(p.text.split())) for p in found) == len("".join(text.split()))
    assert max(given) <= chunk.PIECES * 700  # it takes the square of what it is given
    assert sum(given) < 1.2 * len(text)


@pytest.mark.parametrize("overlap", [0, 100])
def test_a_text_cut_in_windows_is_cut_as_a_whole_one(overlap):
    from semantic_text_splitter import TextSplitter

    said = "The parcel left on day {n}. It was seen in Rotterdam, twice!\nWhere is it now? "
    text = "".join(said.format(n=n) + "\n" * (n % 5 == 0) for n in range(2_000))
    whole = TextSplitter(700, overlap).chunk_indices(text)
    found = passages(Document("a.txt", "", text), Chunking(700, overlap))
    assert [(p.start, p.text) for p in found] == list(whole)


def test_headings_are_those_of_markdown():
    assert titled("# The guide ##\n\nText")[:2] == ("The guide", "Text")
    assert titled("# \n# Real\nText")[:2] == ("Real", "# \n# Real\nText")
    assert titled("Before\n# A # b #\nText")[:2] == ("A # b", "Before\n# A # b #\nText")
    parts = [Passage(str(n), "d", "", text, 0, 0) for n, text in enumerate(["# A\n## B ##\nx", "#\n\n", "y"])]
    assert heading_paths(parts) == [[], ["A", "B"], ["A", "B"]]


def test_differences_of_long_texts_are_told_by_sentences():
    old = "".join(f"Sentence {n} stands here. " for n in range(1_000))
    drawn = word_diff(old, old.replace("Sentence 7 stands", "Sentence 7 stood"))
    assert re.findall("<(del|ins)>(.*?)</", drawn) == [
        ("del", "Sentence 7 stands here."),
        ("ins", "Sentence 7 stood here."),
    ]
