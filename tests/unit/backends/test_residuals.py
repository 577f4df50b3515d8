"""Token vectors as centroids and two bits a component: against the paper's definition in loops."""

from __future__ import annotations

import json
from bisect import bisect_left
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.backends import residuals
from core.backends.residuals import Codec, about_bytes, centroids_for, sample
from core.corpus.enrichments import store, tokens
from core.corpus.enrichments.tokens import TokenIndex, Tokens
from core.domain.errors import Unavailable
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import TEXTS, FakeEngine, HashTokens, MemoryCorpus


def units(seed: int, count: int, dim: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))


def codec(seed: int, dim: int, centroids: int) -> Codec:
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.normal(0, 0.1, 7)).astype(np.float32)
    return Codec(units(seed + 1, centroids, dim), levels[1::2], levels[::2])


def by_loop(one: Codec, vector: list[float], taken: int | None = None) -> tuple[int, list[int], list[float]]:
    """The nearest centroid, the bucket of each component, and the vector that comes back; with `taken` by
    that centroid, which has to be as near but for rounding.
    """
    centroids = one.centroids.tolist()
    products = [sum(a * b for a, b in zip(vector, row, strict=True)) for row in centroids]
    near = max(range(len(centroids)), key=lambda at: products[at])
    if taken is not None:
        assert products[taken] == pytest.approx(products[near], abs=1e-5)
        near = taken
    buckets = [
        # In single precision, as vectors are: a component on a cutoff is in the bucket below it.
        bisect_left(one.cutoffs.tolist(), float(np.float32(a) - np.float32(b)))
        for a, b in zip(vector, centroids[near], strict=True)
    ]
    back = [b + float(one.weights[bucket]) for b, bucket in zip(centroids[near], buckets, strict=True)]
    length = sqrt(sum(value * value for value in back))
    return near, buckets, [value / length for value in back]


@given(st.integers(0, 2**31), st.integers(1, 13), st.integers(1, 9), st.integers(0, 20))
def test_a_vector_is_encoded_and_comes_back_as_the_paper_says(
    seed: int, dim: int, centroids: int, count: int
) -> None:
    one, vectors = codec(seed, dim, centroids), units(seed + 2, count, dim)
    numbers, packed = one.encode(vectors)
    assert (numbers.dtype, packed.dtype) == (np.uint16, np.uint8)
    assert packed.shape == (count, -(-dim // 4))
    out = np.full((count, dim), np.nan, np.float32)
    one.decode(numbers, packed, out)
    for row, vector in enumerate(vectors.tolist()):
        near, buckets, back = by_loop(one, vector)
        products = one.centroids @ vectors[row]
        assert products[numbers[row]] == pytest.approx(products[near], abs=1e-6)
        if numbers[row] == near:  # not another one that is as near but for rounding
            found = [int(packed[row, at // 4]) >> 2 * (at % 4) & 3 for at in range(dim)]
            assert found == buckets
            np.testing.assert_allclose(out[row], back, atol=1e-5)
        assert np.linalg.norm(out[row]) == pytest.approx(1, abs=1e-5)


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(1, 300))
@settings(max_examples=15, deadline=None)
def test_a_codec_has_quartiles_of_the_residuals_and_their_middles(seed: int, dim: int, count: int) -> None:
    vectors = units(seed, count, dim)
    one = Codec.train(vectors, count)
    assert one.centroids.shape == (centroids_for(count), dim)
    np.testing.assert_allclose(np.linalg.norm(one.centroids, axis=1), 1, atol=1e-5)
    left = (vectors - one.centroids[(vectors @ one.centroids.T).argmax(axis=1)]).ravel()
    np.testing.assert_allclose(one.cutoffs, np.quantile(left, [0.25, 0.5, 0.75]), atol=1e-6)
    np.testing.assert_allclose(one.weights, np.quantile(left, [0.125, 0.375, 0.625, 0.875]), atol=1e-6)
    again = Codec.train(vectors, count)
    assert again.centroids.tobytes() == one.centroids.tobytes(), "the same each time"


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (5, 5), (112_614, 2048), (10**9, 1 << 16)])
def test_there_are_more_centroids_for_more_vectors(count: int, expected: int) -> None:
    assert centroids_for(count) == expected


def test_a_sample_is_of_what_there_is_and_in_order() -> None:
    assert sample(0).tolist() == []
    assert sample(7).tolist() == list(range(7))
    found = sample(10_000_000)
    assert len(found) == len(set(found.tolist())) == residuals.MOST_TRAINED
    assert (np.diff(found) > 0).all()


# As an enrichment.


def build(folder: Path, corpus: MemoryCorpus, bits: int = 2) -> tuple[Any, HashTokens, Settings]:
    embedder, here = HashTokens(), Settings(home=folder, late_model=HashTokens.name, late_bits=bits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(store.RECIPES, "tokens", Tokens(lambda _: embedder))
        return store.build("tokens", corpus, settings=here, embedder=corpus.embedder), embedder, here


def test_an_index_of_residuals_scores_what_they_decompress_to(tmp_path: Path) -> None:
    texts = {f"p{at:03}:0-9": f"passage {at} of {at % 7} things" for at in range(150)} | {"q:0-1": "?"}
    corpus = MemoryCorpus(texts)
    for passage in corpus.all:
        object.__setattr__(passage, "title", "")
    made, _, here = build(tmp_path, corpus)
    assert made.model == "hash tokens, 2-bit residuals"
    folder = tmp_path / "enrichments" / "tiny" / "tokens"
    index = store.load("tokens", corpus, here)
    vectors = [HashTokens().embed_query(one.text).vectors for one in corpus.all]
    joined = np.concatenate(vectors).astype(np.float16).astype(np.float32)
    again = Codec.train(joined[sample(len(joined))], len(joined))
    assert np.load(folder / tokens.CENTROIDS).tobytes() == again.centroids.tobytes()
    facts = json.loads((folder / tokens.FACTS).read_text())
    one = Codec(again.centroids, *(np.array(facts[name], np.float32) for name in ("cutoffs", "weights")))
    assert not (folder / tokens.VECTORS).exists()
    assert index.compressed == f"2-bit residuals of {len(one.centroids)} centroids"
    asked = HashTokens().embed_query("passage of things").vectors
    # Which of two centroids as near is taken is a matter of rounding, as FAISS does it in this process.
    taken = iter(np.load(folder / tokens.NEAREST).tolist())
    for row, found in enumerate(index.of(range(corpus.size))):
        expected = [
            by_loop(one, vector, next(taken))[2]
            for vector in vectors[row].astype(np.float16).astype(np.float32).tolist()
        ]
        np.testing.assert_allclose(found, np.reshape(expected, found.shape), atol=1e-5)
        assert index.stored([row])[0].tobytes() == found.tobytes()
        total = sum((max(map(float, found @ q)) if len(found) else 0.0) for q in asked)
        assert index.scores(asked, [row])[0] == pytest.approx(total, abs=1e-5)
    assert index.scores(asked).tolist() == index.scores(asked, range(corpus.size)).tolist()
    assert index.tokens(0) == HashTokens().embed_query(corpus.all[0].text).tokens


def test_the_setting_is_recorded_and_another_is_refused_with_the_way_to_get_it(tmp_path: Path) -> None:
    corpus = MemoryCorpus(TEXTS)
    full, first, _ = build(tmp_path, corpus, bits=16)
    assert (full.model, len(first.read)) == ("hash tokens", corpus.size)
    two = Settings(home=tmp_path, late_model=HashTokens.name, late_bits=2)
    with pytest.raises(Unavailable, match="are by hash tokens, and hash tokens, 2-bit residuals is set: run"):
        store.load("tokens", corpus, two)
    small, second, _ = build(tmp_path, corpus)
    assert second.read == [], "the full vectors that were there are compressed"
    assert small.entries == full.entries
    changed = MemoryCorpus({**TEXTS, "aaa:0-9": "a new first passage"})
    _, third, _ = build(tmp_path, changed)
    assert len(third.read) == changed.size, "residuals are of the centroids of one state of the corpus"
    _, fourth, _ = build(tmp_path, changed, bits=16)
    assert len(fourth.read) == changed.size, "what was lost is embedded again"


def test_residuals_of_nothing_can_be_searched(tmp_path: Path) -> None:
    corpus = MemoryCorpus({"q:0-1": "?"})
    object.__setattr__(corpus.all[0], "title", "")
    _, _, here = build(tmp_path, corpus)
    index = store.load("tokens", corpus, here)
    assert index.scores(HashTokens().embed_query("a word").vectors).tolist() == [0.0]
    assert [one.shape for one in index.of([0])] == [(0, HashTokens.dim)]


def test_routes_take_residuals_and_their_spans_say_so(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path, late_bits=2)
    for route in ("late_interaction", "rerank"):
        result = engine.ask(Request(Query("How do I send a fragile item back?"), "tiny", (route,))).results[0]
        assert (result.status, len(result.hits)) == ("ok", len(TEXTS))
        told = [
            span.attributes["token vectors"] for span in result.spans if "token vectors" in span.attributes
        ]
        assert len(told) == 1
        assert told[0].startswith("2-bit residuals of ")


def test_a_damaged_file_of_residuals_is_refused(tmp_path: Path) -> None:
    corpus = MemoryCorpus(TEXTS)
    _, _, here = build(tmp_path, corpus)
    for name in (tokens.NEAREST, tokens.RESIDUALS, tokens.CENTROIDS):
        file = tmp_path / "enrichments" / "tiny" / "tokens" / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(Unavailable, match=f"{name} does not match its sha256"):
            store.load("tokens", corpus, here)
        file.write_bytes(whole)
    assert isinstance(store.load("tokens", corpus, here), TokenIndex)


def test_the_room_is_told_before_by_the_setting() -> None:
    recipe = store.recipe("tokens")
    full, small = (recipe.about_bytes(40_000_000, 60_000, 384, Settings(late_bits=bits)) for bits in (16, 2))
    assert full == 10_000_000 * 768
    assert small == about_bytes(10_000_000, 384)
    assert 0.125 * full < small < 0.14 * full
