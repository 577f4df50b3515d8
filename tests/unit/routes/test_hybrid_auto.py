"""The measured hybrid against sorting all candidates by hand, and its ends: BM25 alone, dense alone."""

import pytest

from core.corpus.types import UNMEASURED, DenseWeight
from core.domain.types import Query
from core.engine.request import Request
from tests.asking import ids, scores
from tests.fakes import TEXTS, FakeEngine

ASKED = "return a parcel that arrived broken"


def ask(engine, routes, **alpha):
    request = Request(Query(ASKED), "tiny", routes, {"hybrid_auto": alpha})
    return {result.route: result for result in engine.ask(request).results}


@pytest.mark.parametrize("alpha", [0.2, 0.7, 1.0])
def test_every_candidate_has_both_scores(tmp_path, alpha):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    found = ask(engine, ("bm25", "dense", "hybrid_auto"), alpha=alpha)
    corpus = engine.corpus("tiny")
    idf = sum(weight for _, weight in corpus.terms(ASKED))
    candidates = {hit.passage.id for name in ("bm25", "dense") for hit in found[name].hits}
    words = {hit.passage.id: hit.score / idf for hit in corpus.search_sparse(ASKED, corpus.size)}
    vectors = {
        hit.passage.id: hit.score for hit in corpus.search_dense(corpus.embedder.embed_query(ASKED), 999)
    }
    by_hand = {id: (1 - alpha) * words.get(id, 0.0) + alpha * vectors[id] for id in candidates}
    got = scores(found["hybrid_auto"])
    assert got == pytest.approx(by_hand, abs=1e-6)
    assert list(got.values()) == sorted(got.values(), reverse=True)
    if alpha == 1:
        assert list(got) == ids(found["dense"])


@pytest.mark.parametrize("measured", [None, DenseWeight(0.25, 0.1, 0.4, 300)])
def test_without_a_given_weight_it_takes_the_corpus_own(tmp_path, measured):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    engine.corpus("tiny").info.dense_weight = measured
    own = measured.weight if measured else UNMEASURED
    chosen = ask(engine, ("hybrid_auto",))["hybrid_auto"]
    given = ask(engine, ("hybrid_auto",), alpha=own)["hybrid_auto"]
    assert list(scores(chosen).items()) == list(scores(given).items())
    (fused,) = [span for span in chosen.spans if span.name == "fuse by normalised scores"]
    assert fused.args["weights"] == pytest.approx([1 - own, own])
    assert fused.set_by["weights.1"] == "alpha"


@pytest.mark.parametrize(
    ("fused_by", "same"), [("auto", "hybrid_auto"), ("z", "hybrid_linear"), ("rrf", "hybrid_rrf")]
)
def test_a_route_that_starts_with_hybrid_search_takes_its_fusion(tmp_path, fused_by, same):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    request = Request(Query(ASKED), "tiny", (same, "compress"), {"compress": {"fused_by": fused_by}})
    plain, built = engine.ask(request).results
    first = next(span for span in built.spans if span.name.startswith("fuse "))
    assert [(id, score) for id, score in first.hits] == [(hit.passage.id, hit.score) for hit in plain.hits]
