"""Passages a page at a time, and documents by a part of their name."""

import numpy as np
import pytest

from core.corpus import index
from core.corpus.browse import browse
from core.corpus.build import CUT, READ
from core.corpus.enrichments import store
from core.domain.errors import BadInput
from tests.fakes import HashEmbedder


@pytest.fixture
def corpus(tmp_path, settings):
    source = tmp_path / "shop"
    source.mkdir()
    for n in range(30):
        text = "\n\n".join(f"Paragraph {p} about word{n} and common things. " * 12 for p in range(3))
        (source / f"{'100%_' if n == 7 else 'doc'}{n:02}.txt").write_text(text)
    return index.build("shop", source, settings=settings, embedder=HashEmbedder())


def pages(corpus, **how):
    found, start = [], 0
    while True:
        page = browse(corpus, start=start, limit=7, **how)
        assert len(page.passages) == min(7, page.total - start)
        found += zip(page.passages, page.scores or [0.0] * len(page.passages), strict=True)
        start += 7
        if start >= page.total:
            return found


def test_pages_hold_every_passage_once_in_order(corpus):
    assert [p for p, _ in pages(corpus)] == corpus.passages(range(corpus.size))
    assert browse(corpus, start=10_000).passages == ()
    took = corpus.info.build_ms
    assert list(took)[:2] == [READ, CUT]
    assert min(took[READ], took[CUT]) > 0


def test_words_and_vectors_rank_as_search_does(corpus):
    vector = HashEmbedder().embed_query("word3 common")
    for how, hits in (
        ({"words": "word3 common"}, corpus.search_sparse("word3 common", corpus.size)),
        ({"vector": vector}, corpus.search_dense(vector, corpus.size)),
    ):
        found = pages(corpus, **how)
        assert [p.id for p, _ in found] == [hit.passage.id for hit in hits]
        assert [s for _, s in found] == pytest.approx([hit.score for hit in hits], abs=1e-5)


def test_a_document_alone_is_searched_like_the_corpus(corpus):
    pieces = corpus.document("doc03.txt")[1]
    assert [p for p, _ in pages(corpus, document="doc03.txt")] == pieces
    everywhere = {hit.passage.id: hit.score for hit in corpus.search_sparse("paragraph word3", corpus.size)}
    found = pages(corpus, document="doc03.txt", words="paragraph word3")
    assert {p.id for p, _ in found} == {p.id for p in pieces}
    for passage, score in found:
        assert score == pytest.approx(everywhere[passage.id], abs=1e-5)
    assert pages(corpus, words="17")  # a part of word17
    assert pages(corpus, document="doc03.txt", words="17") == []
    by_vector = pages(corpus, document="doc03.txt", vector=HashEmbedder().embed_query("paragraph 2"))
    assert len(by_vector) == len(pieces)
    assert np.all(np.diff([s for _, s in by_vector]) <= 0)
    with pytest.raises(BadInput, match="no document 'nope'"):
        browse(corpus, document="nope")


def test_documents_are_found_by_a_part_of_their_name_taken_literally(corpus):
    assert [one.id for one in corpus.documents("%")] == ["100%_07.txt"]
    assert [one.id for one in corpus.documents("0%_0")] == ["100%_07.txt"]
    assert [one.id for one in corpus.documents("DOC1")] == [f"doc1{n}.txt" for n in range(10)]
    assert corpus.documents("\\") == []
    first = corpus.documents(limit=11)
    assert len(first) == 11
    rest = corpus.documents(after=first[-1].id, limit=100)
    assert len({one.id for one in first + rest}) == 30
    for one in first[:3]:
        document, pieces = corpus.document(one.id)
        assert (one.title, one.passages, one.characters) == (document.title, len(pieces), pieces[-1].end)


def test_what_was_made_for_a_corpus_goes_with_its_index(corpus, settings, tmp_path):
    store.build("children", corpus, settings=settings, embedder=HashEmbedder())
    other = index.build("other", tmp_path / "shop", settings=settings, embedder=HashEmbedder())
    store.build("children", other, settings=settings, embedder=HashEmbedder())
    index.remove("shop", settings=settings)
    assert store.describe("children", "shop", settings) is None
    assert not (settings.home / "enrichments" / "shop").exists()
    assert store.describe("children", "other", settings) is not None
    assert (tmp_path / "shop").is_dir()
