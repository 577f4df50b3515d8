"""Word diffs and the drawing of texts and trees: nothing but our own marks comes through."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.domain.outputs import Rewrite, Search
from core.domain.types import Span
from tests.runs import HOSTILE, make_run
from tests.unit.ui.test_markup import Reader
from ui.components.rewrites import texts, word_diff
from ui.transform.page import drawn, trees


def evil(run):
    """The run with a route that searched with every hostile text."""
    hits = tuple((id, 1.0) for id in list(run.passages)[:12])
    wrote = Rewrite("q", HOSTILE, "variants")
    spans = [Span(1, None, HOSTILE[1], "LLM", 0, 1, {"text": "q"}, wrote, attributes={"note": HOSTILE[2]})]
    spans += [
        Span(n, None, "search BM25", "RETRIEVER", 0, 1, {"text": text}, Search((text,)), hits)
        for n, text in enumerate(HOSTILE, 2)
    ]
    return replace(run, results=(replace(run.results[0], title=HOSTILE[0], spans=tuple(spans)), *run.results))


def test_payloads_stay_text_in_texts_and_trees():
    run = evil(make_run(hostile=True))
    gold = {next(iter(run.passages)): 3}
    grown = trees(run, 10)
    assert len(grown) == 1
    for page in (texts(run, 10, gold), drawn(run, grown, gold, 10)):
        read = Reader(page)
        allowed = {"div", "span", "ul", "li", "h4", "b", "ins", "del"}
        assert set(read.tags) <= allowed | {"table", "thead", "tbody", "tr", "th", "td"}
        assert {name for name, _ in read.attributes} <= {"class", "dir"}
        assert any("onerror=alert(1)" in text for text in read.data)


@given(st.text(), st.text())
def test_a_word_diff_holds_both_texts(before, after):
    read = Reader(word_diff(before, after))
    assert set(read.tags) <= {"span", "del", "ins"}


def test_a_word_diff_by_hand():
    diff = word_diff("What about the other one?", "What about the second vase?")
    same = "<span>What about the </span>"
    assert diff == f"{same}<del>other one</del> <ins>second vase</ins><span>?</span>"
