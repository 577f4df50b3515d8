"""The map: PCA against an eigendecomposition, vectors from the index or made, and the words about them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.analysis.embedding_map import (
    Plane,
    Point,
    cosine,
    embed,
    nearest,
    nearest_on,
    plane,
    points,
)
from tests.fakes import HashEmbedder, MemoryCorpus
from tests.runs import HOSTILE, IMAGINED, QUESTION, STANDALONE, make_run
from ui.charts.maps import describe_map, hover, query_map

RUN = make_run(mishaps=False)


@given(arrays.arrays(np.float64, (7, 4), elements=st.floats(-1, 1, width=32)))
def test_a_plane_is_that_of_the_covariance(given_vectors):
    centred = given_vectors - given_vectors.mean(axis=0)
    values, _ = np.linalg.eigh(centred.T @ centred)
    total = values.sum()
    found = plane(given_vectors)
    if np.allclose(given_vectors, given_vectors[:1]):
        assert found.explained == (0.0, 0.0)
    else:
        assert found.explained == pytest.approx((values[-1] / total, values[-2] / total), abs=1e-6)
        spread = (found.xy.astype(np.float64) ** 2).sum(axis=0)
        assert spread == pytest.approx(values[:-3:-1], rel=1e-3, abs=1e-5)


def test_no_direction_is_no_map_and_two_points_have_one():
    for vectors in (np.ones((1, 3)), np.ones((4, 3)), np.zeros((2, 3))):
        assert plane(vectors).explained == (0.0, 0.0)
        assert "no variance" in describe_map(plane(vectors))
    found = plane(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert found.explained == pytest.approx((1.0, 0.0), abs=1e-9)
    assert np.linalg.norm(found.xy[0] - found.xy[1]) == pytest.approx(2**0.5)


def test_cosines_and_the_nearest_by_hand():
    question, text, passage = np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([0.0, 2.0])
    assert (cosine(question, passage), cosine(text, passage)) == pytest.approx((0.0, 0.8))
    assert cosine(np.zeros(2), question) == 0.0
    vectors = np.array([[1, 0, 0], [0.9, 0.1, 0.4], [0.5, 0.5, 0]], np.float32)
    assert nearest(0, [0, 1, 2], vectors) == 1
    assert nearest_on(0, [0, 1, 2], np.array([[0, 0], [5, 5], [1, 0]], np.float32)) == 2
    assert nearest(0, [0], vectors) is None


# Points and their vectors.


def test_points_are_the_runs_texts_tops_and_labels():
    deep = RUN.results[0].hits[25].passage.id
    found = points(RUN, {deep: 3, "gone": 3, RUN.results[0].hits[26].passage.id: 0}, 3)
    kinds = {one.key: one.kind for one in found}
    assert found[0].key == QUESTION
    assert (kinds[STANDALONE], kinds[IMAGINED], kinds[deep]) == ("text", "imagined", "passage")
    tops = {hit.passage.id for r in RUN.results for hit in r.hits[:3]}
    assert {one.key for one in found if one.kind == "passage"} == tops | {deep}
    best = next(one for one in found if one.key == RUN.results[0].hits[0].passage.id)
    assert "BM25" in best.routes


def test_vectors_come_from_the_index_where_it_holds_the_very_passage():
    corpus = MemoryCorpus({"a": "one two", "b": "three", "c": "four"})
    passages = {one.id: one for one in corpus.all}
    passages["b"] = replace(passages["b"], text="changed since")
    run = replace(RUN, passages=passages)
    wanted = [Point("q", "question", "q"), *(Point(id, "passage", id) for id in "abc")]
    embedder, known = HashEmbedder(), {}
    asked = []
    counting = SimpleNamespace(
        embed_query=embedder.embed_query, embed=lambda texts: (asked.extend(texts), embedder.embed(texts))[1]
    )
    assert list(embed(run, wanted, counting, corpus, known)) == [3, 4]
    assert asked == ["B changed since"]
    assert known["passage", "a"] == pytest.approx(corpus.vectors([corpus.row("a")])[0])
    assert list(embed(run, wanted, counting, corpus, known)) == [4]
    assert asked == ["B changed since"], "nothing is embedded twice"


# The chart.


def test_the_chart_places_every_point_and_rings_labels_and_choice():
    found = points(RUN, {}, 3)
    gold = next(one.key for one in found if one.kind == "passage")
    placed = Plane(np.arange(2 * len(found), dtype=np.float32).reshape(-1, 2), (0.4, 0.1))
    figure = query_map(found, placed, gold={gold: 3}, chosen=gold)
    traces = {one.name: one for one in figure.data}
    kinds = ("question", "query variant", "hypothetical passage", "passage")
    assert sum(len(traces[name].x) for name in kinds) == len(found)
    at = next(n for n, one in enumerate(found) if one.key == gold)
    for name in ("labelled", "chosen passage"):
        assert (traces[name].x[0], traces[name].y[0]) == tuple(placed.xy[at])
    assert len({traces[name].marker.symbol for name in kinds}) == 4
    assert figure.layout.yaxis.scaleanchor == "x"


def test_hostile_text_stays_text_in_the_chart():
    evil = points(make_run(hostile=True, mishaps=False), {}, 10)
    placed = Plane(np.zeros((len(evil), 2), np.float32), (0.1, 0.1))
    told = query_map(evil, placed).to_json()
    assert "<img" not in told
    assert "<svg" not in told
    assert hover(Point(HOSTILE[0], "text", HOSTILE[0], (HOSTILE[0],)), {})[0].startswith("&lt;img")
