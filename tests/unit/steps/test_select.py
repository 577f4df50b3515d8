"""MMR and near-duplicates: against definitions written the slow way, hand-worked numbers, and in routes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.types import Query
from core.steps.select import duplicates, likeness, mmr, pack, resemblance, unpack
from tests.asking import ask, ids
from tests.fakes import TEXTS, FakeEngine, HashEmbedder

# maximal marginal relevance


def by_definition(relevance, vectors, lam, k):
    """Every candidate against every chosen one, each time anew."""
    chosen = []
    while len(chosen) < min(k, len(relevance)):
        best, best_score = None, -np.inf
        for row in range(len(relevance)):
            if row in chosen:
                continue
            redundancy = max((sum(map(float, vectors[row] * vectors[c])) for c in chosen), default=0.0)
            score = lam * relevance[row] - (1 - lam) * redundancy
            if score > best_score:
                best, best_score = row, score
        chosen.append(best)
    return chosen


def products(vectors):
    rows = vectors.astype(np.float64)
    return (rows[:, None] * rows).sum(axis=2)


@given(st.integers(0, 10_000), st.integers(0, 12))
def test_similarities_come_back_from_a_span_exactly(seed, n):
    alike = likeness(unit(seed, n))
    back = unpack(json.loads(json.dumps(pack(alike))), n)
    off = ~np.eye(n, dtype=bool)
    assert np.array_equal(back[off], alike[off])


def test_similarities_of_another_size_are_refused():
    with pytest.raises(BadInput, match="2 similarities for 3 passages; there should be 3"):
        unpack([1, 2], 3)


def unit(seed, n, dim=5):
    vectors = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@given(st.integers(0, 10_000), st.integers(0, 25), st.integers(1, 30), st.floats(0, 1))
def test_mmr_equals_its_definition(seed, n, k, lam):
    vectors = unit(seed, n)
    relevance = np.random.default_rng(seed + 1).random(n)
    picks = mmr(relevance, products(vectors), lam, k)
    assert [pick.row for pick in picks] == by_definition(relevance, vectors, lam, k)
    for place, pick in enumerate(picks):
        before = [vectors[other.row] @ vectors[pick.row] for other in picks[:place]]
        assert pick.relevance == relevance[pick.row]
        assert pick.similarity == pytest.approx(max(before, default=0.0), abs=1e-6)
        assert pick.score == pytest.approx(lam * pick.relevance - (1 - lam) * pick.similarity)
        if before:
            assert vectors[pick.nearest] @ vectors[pick.row] == pytest.approx(max(before), abs=1e-6)
        else:
            assert pick.nearest is None


small = st.lists(st.tuples(*[st.integers(-2, 2)] * 3), max_size=8)  # many ties, and exact in floats


@given(small, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(1, 9))
def test_ties_go_to_the_better_ranked(rows, lam, k):
    vectors = np.array(rows, np.float32).reshape(-1, 3)
    relevance = vectors.sum(axis=1)
    assert [p.row for p in mmr(relevance, products(vectors), lam, k)] == by_definition(
        relevance, vectors, lam, k
    )


@pytest.mark.parametrize(("lam", "k", "wrong"), [(1.1, 3, "1.1"), (-0.1, 3, "-0.1"), (0.5, 0, "k is 0")])
def test_mmr_refuses_what_means_nothing(lam, k, wrong):
    with pytest.raises(BadInput, match=wrong):
        mmr(np.ones(1), np.ones((1, 1)), lam, k)


REPEATED = {
    **TEXTS,
    "returns-copy:0-90": TEXTS["returns:0-90"].replace("To send", "to SEND") + " Please.",
}
QUESTION = Query("How do I send a returned item back?")


def run(tmp_path, route, texts=REPEATED, **parameters):
    result, _ = ask(tmp_path, route, QUESTION, options={"texts": texts}, **parameters)
    assert (result.status, result.error) == ("ok", None)
    return result


def test_the_mmr_route_moves_a_repeated_passage_down_and_tells_why(tmp_path):
    plain, result = run(tmp_path, "dense"), run(tmp_path, "mmr", lam=0.3, k=3)
    assert {"returns:0-90", "returns-copy:0-90"} == set(ids(plain)[:2])
    second = ids(plain)[1]
    assert second not in ids(result)[:3]
    assert ids(result)[3:] == [id for id in ids(plain) if id not in ids(result)[:3]]
    assert [hit.score for hit in result.hits] == [1 / rank for rank in range(1, len(result.hits) + 1)]
    chosen = result.spans[-1].output.chosen
    assert [one.id for one in chosen] == ids(result)[:3]
    assert (chosen[0].was, chosen[0].nearest, chosen[0].similarity) == (1, None, 0.0)
    assert chosen[0].relevance == pytest.approx(plain.hits[0].score, abs=1e-6)
    assert all(one.nearest in ids(result)[:3] for one in chosen[1:])
    assert "note" not in result.spans[-1].attributes
    still = run(tmp_path, "mmr", lam=1)
    assert ids(still) == ids(plain)
    assert "no passage moved" in still.spans[-1].attributes["note"]


def test_only_the_pool_is_chosen_from(tmp_path):
    texts = {f"d{n:03}:0-9": f"send item {n} " + "word " * n for n in range(40)}
    plain, result = run(tmp_path, "dense", texts), run(tmp_path, "mmr", texts, lam=0, pool=10, k=100)
    assert set(ids(result)[:10]) == set(ids(plain)[:10])
    assert ids(result)[10:] == ids(plain)[10:]


# near-duplicates


def jaccards(texts, w):
    def shingles(text):
        words = "".join(c if c.isalnum() or c == "_" else " " for c in text.lower()).split()
        if len(words) < w:
            return {" ".join(words)} if words else set()
        return {" ".join(words[i : i + w]) for i in range(len(words) - w + 1)}

    sets = [shingles(text) for text in texts]
    return [[len(a & b) / len(a | b) if a | b else 0.0 for b in sets] for a in sets]


some_text = st.lists(st.sampled_from(["a", "rose", "is", "Is", "rose,", "...", "x_1"]), max_size=9).map(
    " ".join
)


@given(st.lists(some_text, max_size=7), st.integers(1, 5))
def test_resemblance_equals_the_sets_written_out(texts, w):
    expected = np.array(jaccards(texts, w)).reshape(len(texts), len(texts))
    np.testing.assert_allclose(resemblance(texts, w), expected)


@given(st.integers(0, 10_000), st.integers(0, 12), st.floats(0, 1))
def test_what_is_dropped_is_like_something_better_and_what_is_kept_is_not(seed, n, threshold):
    half = np.random.default_rng(seed).random((n, n))
    similarity = (half + half.T) / 2
    dropped = duplicates(similarity, threshold)
    kept = [row for row in range(n) if row not in dropped]
    for row, other in dropped.items():
        better = [one for one in kept if one < row]
        assert other in better
        assert similarity[row, other] == max(similarity[row, one] for one in better) >= threshold
    for row in kept:
        assert all(similarity[row, one] < threshold for one in kept if one < row)


def test_the_dedupe_route_keeps_the_best_of_each_group_and_tells_what_it_dropped(tmp_path):
    plain = run(tmp_path, "hybrid_auto")
    best, copy = sorted(("returns:0-90", "returns-copy:0-90"), key=ids(plain).index)
    result = run(tmp_path, "dedupe")
    assert ids(result) == [id for id in ids(plain) if id != copy]
    (one,) = result.spans[-1].output.dropped.items()
    assert one[0] == copy
    assert one[1].kept == best
    expected = jaccards([REPEATED[best], REPEATED[copy]], 3)[0][1]
    assert one[1].similarity == pytest.approx(expected)
    assert 0.8 <= expected < 1
    unlike = run(tmp_path, "dedupe", TEXTS).spans[-1]
    assert unlike.output.dropped == {}
    assert "none is dropped" in unlike.attributes["note"]


def test_dedupe_by_embedding_takes_equal_vectors_for_equal(tmp_path):
    texts = {"a:0-9": "send it back", "b:0-9": "back it, send!", "c:0-9": "customs duty"}
    result = run(tmp_path, "dedupe", texts, by="embedding", threshold=1)
    assert len(ids(result)) == 2
    (told,) = result.spans[-1].output.dropped.values()
    assert told.similarity == 1.0
    assert "c:0-9" in ids(run(tmp_path, "dedupe", texts, by="words", threshold=1))
    assert len(ids(run(tmp_path, "dedupe", texts, by="words", threshold=1))) == 3


# passages from elsewhere


def test_passages_that_are_not_in_the_index_are_embedded(tmp_path, steps):
    do, corpus, embedder = steps
    own = corpus.search_dense(embedder.embed_query("send it back"), 2)
    foreign = do.web("customs", 1)
    asked = "what holds a parcel"
    before = len(embedder.calls)
    ranked = do.mmr(asked, (*own, *foreign), 1.0, 3)
    assert embedder.calls[before:] == [asked]
    span = do.context.trace.spans()[-2]
    assert span.attributes["embedded"] == 1
    of = {one.id: one.relevance for one in span.output.chosen}
    for hit in own:
        assert of[hit.passage.id] == pytest.approx(
            float(HashEmbedder().embed([hit.passage.text])[0] @ HashEmbedder().embed([asked])[0]), abs=1e-6
        )
    text = f"{foreign[0].passage.title} {foreign[0].passage.text}"
    assert of[foreign[0].passage.id] == pytest.approx(
        float(HashEmbedder().embed([text])[0] @ HashEmbedder().embed([asked])[0]), abs=1e-6
    )
    assert {hit.passage.id for hit in ranked} == set(of)
    assert do.dedupe((*own, *foreign), "embedding", 0.99) == (*own, *foreign)


@pytest.fixture
def steps(tmp_path):
    """Steps of one route over the small corpus, with its own passages standing in for the web's."""
    from core.engine.resources import Snapshot

    engine = FakeEngine(tmp_path)
    corpus = engine.fakes["tiny"]
    web = Snapshot(corpus, corpus.embedder)
    return engine.steps(corpus, web=web), corpus, corpus.embedder
