"""What is read of a passage: the sentences around the one found, and pieces that merge into their passage."""

from dataclasses import replace

import pytest

from core.analysis.remarks import remarks
from core.corpus.chunk import pieces, sentences
from core.corpus.enrichments import store
from core.corpus.enrichments.keys import SIZE
from core.domain.text import searchable
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine

FIRST = "Alpha opens early. Beta follows at noon. "
SECOND = "Gamma parcels need customs forms. Delta ends it. Epsilon is last."
LONG = " ".join(
    f"Sentence {at} tells of vase {at} and of parcel {at} in some more words." for at in range(12)
)
TEXTS = {
    f"d:0-{len(FIRST)}": FIRST,
    f"d:{len(FIRST)}-{len(FIRST + SECOND)}": SECOND,
    f"long:0-{len(LONG)}": LONG,
    "other:0-30": "Nothing of this kind is here.",
}
QUESTION = "Gamma parcels need customs forms."


def asked(tmp_path, route, text=QUESTION, **parameters):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    corpus = engine.fakes["tiny"]
    places = [tuple(map(int, one.id.split(":")[1].split("-"))) for one in corpus.all]
    corpus.all = [replace(one, start=a, end=b) for one, (a, b) in zip(corpus.all, places, strict=True)]
    for name in ("sentences", "children"):
        store.build(name, corpus, settings=engine.settings, embedder=corpus.embedder)
    request = Request(Query(text), "tiny", (route,), {route: parameters})
    (result,) = engine.ask(request).results
    assert (result.status, result.error) == ("ok", None)
    return result, corpus, engine


@pytest.mark.parametrize(
    ("window", "read"),
    [
        (0, "Gamma parcels need customs forms."),
        (1, "Beta follows at noon. Gamma parcels need customs forms. Delta ends it."),
        (20, " ".join((FIRST + SECOND).split())),
    ],
)
def test_a_window_goes_over_the_passage_boundary_and_not_beyond_the_document(tmp_path, window, read):
    result, _, _ = asked(tmp_path, "sentence_window", window=window)
    found = result.hits[0].passage.id
    assert found == f"d:{len(FIRST)}-{len(FIRST + SECOND)}"
    assert result.basis.excerpts[found] == read
    told = next(span.output for span in result.spans if span.name == "take the sentences around")
    assert told.excerpts == result.basis.excerpts


def test_a_passage_scores_what_its_best_sentence_scores(tmp_path):
    result, corpus, _ = asked(tmp_path, "sentence_window")
    vector = corpus.embedder.embed_query(QUESTION)
    best = {}
    for passage in corpus.all:
        spans = sentences(passage.text, 0, len(passage.text))
        vectors = corpus.embedder.embed([searchable(passage.title, passage.text[a:b]) for a, b in spans])
        best[passage.id] = max((vectors @ vector).tolist())
    assert next(hit.passage.id for hit in result.hits) == max(best, key=best.get)
    assert set(best) == {hit.passage.id for hit in result.hits}


def test_pieces_merge_where_more_than_the_share_is_found(tmp_path):
    text = "Sentence 3 tells of vase 3 and parcel 3 in some more words."
    _, corpus, _ = asked(tmp_path, "parent", text)
    row = next(row for row, passage in enumerate(corpus.all) if passage.doc_id == "long")
    many = len(list(pieces(corpus.all[row].text, SIZE)))
    assert many >= 4
    for count in (1, 2, many, 50):
        result, _, _ = asked(tmp_path, "auto_merge", text, pieces=count, share=0.5)
        merging = next(span.output for span in result.spans if span.name.startswith("merge pieces"))
        one = next(one for one in merging.passages if one.id.startswith("long"))
        assert one.pieces == many
        assert one.found <= count
        assert (one.text == "") == (one.found > 0.5 * many)
        assert all(part in LONG for part in one.text.split(" … "))
        assert (one.id in result.basis.excerpts) == bool(one.text)
        (said,) = [remark for remark in remarks(result, "tiny") if remark.startswith("Read whole")]
        ranks = [str(at) for at, each in enumerate(merging.passages, 1) if not each.text]
        assert (f"ranks {', '.join(ranks)};" if ranks else "no passage;") in said


def test_the_ranking_is_that_of_parent(tmp_path):
    plain, _, _ = asked(tmp_path, "parent")
    merged, _, _ = asked(tmp_path, "auto_merge", share=1.0)
    assert [(hit.passage.id, hit.score) for hit in merged.hits] == [
        (hit.passage.id, hit.score) for hit in plain.hits
    ]
    assert set(merged.basis.excerpts) == {hit.passage.id for hit in merged.hits[:5]}
