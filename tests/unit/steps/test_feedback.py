"""Relevance feedback: against the formulas written the slow way, worked numbers, and in routes."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.sparse import BM25Index, write_index
from core.backends.terms import Analyzer
from core.domain.types import Query
from core.engine.request import Request
from core.steps.feedback import interpolated, relevance_model, usable
from tests.asking import ask, ids, span
from tests.fakes import FakeEngine, HashEmbedder
from ui.components import rewrites

WORDS = st.sampled_from(["customs", "duty", "parcel", "refund", "box", "glass", "tape", "week"])
PASSAGES = st.lists(st.lists(WORDS, min_size=1, max_size=12), min_size=1, max_size=6)


def by_loop(texts, scores, terms):
    """P(w|R) of each word by itself, as the paper writes the sum; the largest, scaled to 1."""
    likely = {}
    for word in sorted({word for text in texts for word in text}):
        likely[word] = sum(s * text.count(word) / len(text) for text, s in zip(texts, scores, strict=True))
    best = sorted(likely, key=lambda word: (-round(likely[word], 12), word))[:terms]
    whole = math.fsum(likely[word] for word in best)
    return {word: likely[word] / whole for word in best}


@given(PASSAGES, st.data(), st.integers(1, 8))
def test_the_relevance_model_is_the_sum_of_the_paper(texts, data, terms):
    scores = data.draw(st.lists(st.floats(0.1, 30), min_size=len(texts), max_size=len(texts)))
    found = relevance_model([Counter(text) for text in texts], scores, terms)
    expected = by_loop(texts, scores, terms)
    assert sum(found.values()) == pytest.approx(1)
    assert sorted(found.values()) == pytest.approx(sorted(expected.values()))
    for word in found.keys() & expected.keys():
        assert found[word] == pytest.approx(expected[word])


def test_worked_numbers():
    """Two passages, scores 3 and 1: duty 3/2 + 0, customs 3/2 + 1/2, box 1/2."""
    found = relevance_model([Counter(["duty", "customs"]), Counter(["customs", "box"])], [3, 1], 2)
    assert found == pytest.approx({"customs": 4 / 7, "duty": 3 / 7})
    query = interpolated({"customs": 0.5, "fee": 0.5}, found, 0.5)
    assert dict(query) == pytest.approx({"customs": 0.25 + 2 / 7, "fee": 0.25, "duty": 3 / 14})
    assert [term for term, _ in query] == ["customs", "fee", "duty"]
    assert relevance_model([], [], 5) == {}
    assert dict(interpolated({"a": 1.0}, {}, 1.0)) == {"a": 1.0}


def test_common_short_and_odd_terms_are_not_taken():
    def idf(having, size=100):
        return math.log(1 + (size - having + 0.5) / (having + 0.5))

    assert usable("customs", idf(10), 100)
    assert not usable("customs", idf(11), 100)
    assert not usable("a", idf(1), 100)
    assert not usable("x" * 21, idf(1), 100)
    assert not usable("2025_11", idf(1), 100)


@given(PASSAGES, st.dictionaries(WORDS, st.floats(0.01, 3), max_size=5))
def test_weighted_terms_are_the_weighted_sum_of_each_terms_search(tmp_path_factory, texts, terms):
    folder = tmp_path_factory.mktemp("words") / "bm25"
    write_index([" ".join(text) for text in texts], folder, Analyzer("none"))
    index = BM25Index(folder, len(texts))
    expected = np.zeros(len(texts))
    for term, weight in terms.items():
        expected += weight * index.scores(term).astype(np.float64)
    found = index.weighted(terms)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for row in range(len(texts)):
        assert sum(part for _, part in index.parts(terms, row)) == pytest.approx(found[row], rel=1e-4)


TEXTS = {
    "customs:0-9": "customs duty is paid by the courier",
    "courier:0-9": "the courier asks for duty at the door",
    "door:0-9": "leave it at the door",
    **{f"other{at}:0-9": f"glass tape box number{at}" for at in range(30)},
}


def asked(tmp_path, route, text="customs", **parameters):
    result, _ = ask(tmp_path, route, text, options={"texts": TEXTS}, **parameters)
    assert (result.status, result.error) == ("ok", None)
    return result


def test_rm3_finds_what_shares_no_word_with_the_question_and_says_what_it_added(tmp_path):
    assert ids(asked(tmp_path, "bm25")) == ["customs:0-9"]
    result = asked(tmp_path, "prf_rm3")
    assert ids(result)[0] == "customs:0-9"
    assert "courier:0-9" in ids(result)
    expand = span(result, "add feedback terms (RM3)")
    assert expand.output.passages == ("customs:0-9",)
    assert "duty" in dict(expand.output.terms)
    assert "duty" in expand.output.added
    assert "customs" not in expand.output.added
    search = result.spans[-1]
    assert search.output.expansion == expand.output.terms
    assert search.output.texts == expand.output.texts
    assert {id for id, _ in search.hits[:3]} <= set(search.output.matched)
    nothing = span(asked(tmp_path, "prf_rm3", text="unheard"), "add feedback terms (RM3)")
    assert "used unchanged" in nothing.attributes["note"]
    assert nothing.output.terms == (("unheard", 1.0),)


@pytest.mark.parametrize(("passages", "feedback"), [(1, 0.4), (3, 0.9), (2, 0.0)])
def test_rocchio_by_hand(tmp_path, passages, feedback):
    result = asked(tmp_path, "prf_rocchio", passages=passages, feedback=feedback)
    embedder = HashEmbedder()
    first = [hit.passage.text for hit in asked(tmp_path, "dense").hits[:passages]]
    moved = (1 - feedback) * embedder.embed_query("customs") + feedback * embedder.embed(first).mean(0)
    moved /= np.linalg.norm(moved)
    for hit in result.hits[:5]:
        assert hit.score == pytest.approx(float(embedder.embed([hit.passage.text])[0] @ moved), abs=1e-5)
    assert len(span(result, "move the vector").output.feedback) == passages


def test_query2doc_repeats_the_question_before_the_passage(tmp_path):
    result = asked(tmp_path, "query2doc", times=3)
    (written,) = result.spans[0].output.texts
    assert result.spans[-1].output.texts == (f"customs customs customs {written}",)


def test_transform_marks_the_added_terms_and_names_where_they_are_from(tmp_path):
    engine = FakeEngine(tmp_path, texts=TEXTS, titles={"customs": "<b>Duty</b>"})
    page = str(rewrites.texts(engine.ask(Request(Query("customs"), "tiny", ("prf_rm3",))), 10))
    assert "<ins>duty</ins>" in page
    assert "<ins>customs</ins>" not in page
    assert "added terms are from &lt;b&gt;Duty&lt;/b&gt;" in page
