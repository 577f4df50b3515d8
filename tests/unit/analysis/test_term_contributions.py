"""What terms add to a BM25 score: against the formula, against bm25s, and marked where they stand."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.term_contributions import Marker, contributions, searched_by_terms, searched_texts
from core.backends.sparse import K1, B, BM25Index, write_index
from core.backends.terms import Analyzer, analyzer
from core.domain.outputs import Embedding, Search
from core.domain.text import searchable
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Run, Span
from tests.runs import make_run

ENGLISH = analyzer("english")
WORDS = ("return", "returned", "customs", "box", "boxes", "the", "label", "damage", "damaged", "vase")


@dataclass
class Indexed:
    """A BM25 index whose passages' ids are their rows."""

    index: BM25Index

    @property
    def analyzer(self) -> Analyzer:
        return self.index.analyzer

    def terms(self, text):
        return self.index.terms(text)

    def explain(self, text, passage_id):
        return self.index.explain(text, int(passage_id))


def indexed(folder: Path, passages) -> Indexed:
    texts = [searchable(passage.title, passage.text) for passage in passages]
    write_index(texts, folder / "bm25", ENGLISH)
    return Indexed(BM25Index(folder / "bm25", len(texts)))


def passage(row, title, text):
    return Passage(str(row), "d", title, text)


some_texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=9)
questions = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=7).map(" ".join)


@given(some_texts, questions)
def test_parts_are_those_of_the_formula_and_add_up_to_the_score(texts, question):
    import tempfile

    import bm25s

    passages = [passage(row, "vase", text) for row, text in enumerate(texts)]
    documents = [ENGLISH.terms(searchable(one.title, one.text)) for one in passages]
    length = sum(map(len, documents)) / len(documents)
    theirs = bm25s.BM25(k1=K1, b=B, method="lucene")
    theirs.index(documents, show_progress=False)
    asked = [term for term in ENGLISH.terms(question) if term in theirs.vocab_dict]
    with tempfile.TemporaryDirectory() as folder:
        corpus = indexed(Path(folder), passages)
        for row, one in enumerate(passages):
            found = contributions(corpus, question, one)
            total = sum(part.part for part in found)
            assert total == pytest.approx(float(corpus.index.scores(question)[row]), rel=1e-5, abs=1e-6)
            expected = float(theirs.get_scores(asked)[row]) if asked else 0.0
            assert total == pytest.approx(expected, rel=1e-5, abs=1e-6)
            assert [part.part for part in found] == sorted((part.part for part in found), reverse=True)
            assert sorted(part.term for part in found) == sorted(set(ENGLISH.terms(question)))
            for part in found:
                having = sum(part.term in terms for terms in documents)
                count = documents[row].count(part.term)
                idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
                tf = count / (count + K1 * (1 - B + B * len(documents[row]) / length))
                assert part.found == count
                assert part.asked == ENGLISH.terms(question).count(part.term)
                assert part.idf == pytest.approx(idf)
                assert part.tf == pytest.approx(tf, rel=1e-5, abs=1e-7)


# Marking.


def test_words_are_marked_by_their_stems():
    marker = Marker("Are vases returned?", ["damage to the box"], ENGLISH)
    assert list(marker.pieces("The Vase’s box, RETURNING: the damages.")) == [
        ("The ", ""),
        ("Vase", "asked"),
        ("’s ", ""),
        ("box", "written"),
        (", ", ""),
        ("RETURNING", "asked"),
        (": the ", ""),
        ("damages", "written"),
        (".", ""),
    ]
    assert Marker("box", ["box"], ENGLISH).kinds == {"box": "asked"}
    assert list(Marker("", [], ENGLISH).pieces("")) == []
    marker = Marker("vase", [], ENGLISH)
    assert ("vase", "asked") in list(marker.pieces("İİİ vase İ"))


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_the_pieces_are_the_text(text, question, other):
    marker = Marker(question, [other], ENGLISH)
    pieces = list(marker.pieces(text))
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)
    if text.isascii():  # elsewhere a letter's lower case may hang on its neighbours
        marked = [term for piece, kind in pieces if kind for term in ENGLISH.terms(piece)]
        assert marked == [term for term in ENGLISH.terms(text) if term in marker.kinds]


# What was searched by terms.


def test_the_searches_by_terms_and_their_stored_scores():
    def search(id, *texts, links=(), **args):
        hits = ((f"p{id}", float(id)),)
        return Span(id, None, "s", "RETRIEVER", 0, 1, args, Search(texts), hits, links)

    vectors = [
        Span(6, None, "embed", "EMBEDDING", 0, 1, {}, Embedding(("near",))),
        Span(7, None, "mean", "EMBEDDING", 0, 1, {}, Embedding(("one", "two"))),
    ]
    spans = (
        search(1, "other", engine="bm25s"),
        search(2, "q", engine="bm25s"),
        search(3, "keys"),
        search(4, engine="bm25s"),
        search(5, "q", engine="rank-bm25"),
        *vectors,
        search(8, links=(Link("vector", 6, 384),)),
        search(9, links=(Link("vector", 7, 384),)),
        search(10, links=(Link("vector", None, 384),)),
    )
    result = RouteResult("r", "R", "ok", 1.0, hits=(Hit(passage(0, "", ""), 1.0),), spans=spans)
    run = Run("r", "", Query("q"), "c", "f", {}, (result,))
    assert searched_by_terms(run) == {"q": {"p2": 2.0, "p5": 5.0}, "other": {"p1": 1.0}}
    assert list(searched_by_terms(run)) == ["q", "other"]
    assert searched_texts(run) == {"q", "other", "keys", "near"}
    assert searched_by_terms(replace(make_run(), results=())) == {}
